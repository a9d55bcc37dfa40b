// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/kernel/linear/activation_slope.hpp>
#include <lockstep/kernel/row_dropout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Affine map of each row.
template <class Space>
struct Linear : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Linear<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Rows that share one partial sum of the parameters' gradients: as many as one pass of the matrix product takes.
  static constexpr Index chunk_rows = detail::column_steps;

  /// Computes y = x weight^T + bias.
  /// @shape x [rows, inputs]   @shape weight [outputs, inputs]   @shape bias [outputs], or null for none
  /// @shape y [rows, outputs], overwritten
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar> y);

  /// Computes y = dropout(f(h)) for h = x weight^T + bias and the activation f while h is in cache. If
  /// keeps_slope(f), also computes slope = dropout(f'(h)), unless slope is null. Other activations do not write the
  /// slope, because y determines it, see ActivationSlope.
  /// @shape y, slope [rows, outputs], overwritten
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Activation activation, RowDropout<HostSpace> dropout, Matrix<Scalar> y, Matrix<Scalar> slope);

  /// Computes h = x weight^T + bias, and y = gelu(h) while h is in cache.
  /// @shape h, y [rows, outputs], overwritten
  template <class Scalar>
  static void forward_gelu(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                           Vector<Scalar const> bias, Matrix<Scalar> h, Matrix<Scalar> y);
  /// Returns how many of `rows` to process through this layer and the next before the following rows. With this number
  /// y stays in cache, and weights are packed rarely enough.
  [[nodiscard]] static Index rows_per_pass(Stream stream, Index rows) noexcept;

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Stream stream, Index rows, Index inputs, Index outputs) noexcept;

  /// Computes dx = dy weight, dweight = dy^T x and dbias = the sum of dy over the rows; overwrites or adds to each.
  /// Skips those that are null. Computes all three from a chunk of dy while it is in cache, and sums the chunks'
  /// parameter gradients in order. With a `slope` (of the activation that computed x), overwrites dx with (dy weight) *
  /// slope.
  /// @shape dy [rows, outputs]   @shape x, dx, slope [rows, inputs]   @shape weight, dweight [outputs, inputs]
  /// @shape dbias [outputs]   @shape partial [partial_elements(stream, rows, inputs, outputs)], overwritten
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                       ActivationSlope<Scalar, HostSpace> slope, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias, Write dbias_write,
                       Scalar* partial);

  /// Returns the number of elements that `backward_through_gelu` needs for x.
  [[nodiscard]] static Index recomputed_elements(Stream stream, Index rows, Index inputs) noexcept;

  /// Computes `backward` for x = gelu(h) if only h was kept. Recomputes a bit-identical chunk of x when the chunk is
  /// processed. Overwrites h with its gradient, (dy weight) * gelu'(h). Skips a null dbias; dweight must not be null.
  /// @shape h [rows, inputs]   @shape recomputed [recomputed_elements(stream, rows, inputs)], overwritten
  template <class Scalar>
  static void backward_through_gelu(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar> h,
                                    Matrix<Scalar const> weight, Matrix<Scalar> dweight, Write dweight_write,
                                    Vector<Scalar> dbias, Write dbias_write, Scalar* partial, Scalar* recomputed);

 private:
  [[nodiscard]] static constexpr Index chunks(Index rows) noexcept { return (rows + chunk_rows - 1) / chunk_rows; }

  /// Whether chunks are added in place. A single thread adds chunk to chunk, and overwrites with the first. Several
  /// threads keep the chunks' sums separate and add them in the same order. A BLAS library may add to C in an order of
  /// its own, so it keeps the sums separate, too.
  [[nodiscard]] static bool adds_in_place(Stream stream) noexcept;

  template <class Scalar>
  static void check_bias(Extents<2> weight, Vector<Scalar> bias);
  static void check_equal_shapes(Extents<2> layer, Extents<2> activation);

  /// Calls `epilogue(row, rows, column, columns)` for each part of y while the part is in cache.
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar> y, detail::GemmEpilogue epilogue);

  /// Computes y = f(h) for a rule f, and the slopes unless `slope` is null. h is in `slope`, or in y if it is null.
  template <class Rule, class Scalar>
  static void activate(Scalar* y, Scalar* slope, Index count);

  /// Drops the same elements of x and y, or only of x if y is null. One evaluation of the mask serves forward and
  /// backward.
  template <class Scalar>
  static void drop(RowDropout<HostSpace> dropout, Index row, Index width, Index column, Index count, Scalar* x,
                   Scalar* y);

  /// Computes dx *= slope over a part of both.
  template <class Scalar>
  static void multiply_part(ActivationSlope<Scalar, HostSpace> slope, Matrix<Scalar const> x, Matrix<Scalar> dx,
                            Index first, Index rows, Index column, Index columns);

  /// Computes to = the sum over the chunks, in order, or adds it to `to`.
  template <class Scalar>
  static void sum_chunks(Stream stream, Scalar const* partial, Index count, Index stride, Index size, Scalar* to,
                         Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/linear/linear.ipp>
#endif
