// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <optional>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. cuBLASLt computes the matrix products. In
/// bfloat16, all factors have that type, including weight and bias; the parameters' gradients are float. Kernels of
/// Lockstep's own sum the bias's gradient, and some input gradients of several layers.
/// @determinism as for Gemm
template <>
struct Linear<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = x weight^T + bias.   @throws ShapeError if the shapes disagree
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar> y);

  /// Computes y = dropout(f(h)) for h = x weight^T + bias and the activation f; for gelu also the slope, unless it is
  /// null.
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Activation activation, RowDropout<CudaSpace> dropout, Matrix<Scalar> y, Matrix<Scalar> slope);

  /// Computes h = x weight^T + bias, and y = gelu(h).
  template <class Scalar>
  static void forward_gelu(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                           Vector<Scalar const> bias, Matrix<Scalar> h, Matrix<Scalar> y);
  /// Returns all rows: several launches cost more than reads from outside the cache.
  [[nodiscard]] static Index rows_per_pass(Stream, Index rows) noexcept { return rows; }

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Stream, Index rows, Index, Index outputs) noexcept;

  /// Computes dx = dy weight, dweight = dy^T x and dbias = the sum of dy over the rows; overwrites or adds to each.
  /// Skips those that are null. With a slope, overwrites dx with (dy weight) * slope.   @throws ShapeError if the
  /// shapes disagree
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                       ActivationSlope<Scalar, CudaSpace> slope, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Accumulate<Scalar>> dweight, Write dweight_write, Vector<Accumulate<Scalar>> dbias,
                       Write dbias_write, Accumulate<Scalar>* partial);

  /// Computes y_i = x weight_i^T + bias_i for several layers of equal shapes, in one matrix product if their parameters
  /// are stored at equal distances. Biases are all null or all given.
  /// @shape y [layers * rows, outputs]: the results one after the other
  template <class Scalar, std::size_t layers>
  static void forward_each(Stream stream, Matrix<Scalar const> x,
                           std::array<Matrix<Scalar const>, layers> const& weights,
                           std::array<Vector<Scalar const>, layers> const& biases, Matrix<Scalar> y);

  /// Computes `backward` for layers whose outputs `forward_each` computed: dx is the sum of their gradients, in order.
  /// In 16 bits, dx is rounded once for the shapes and addresses of kernel/linear/detail/summed_products.cuh, and once
  /// per layer for others. Biases are all null or all given.
  /// @shape dy [layers * rows, outputs]   @shape partial [layers * partial_elements], overwritten
  template <class Scalar, std::size_t layers>
  static void backward_each(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                            std::array<Matrix<Scalar const>, layers> const& weights, Matrix<Scalar> dx, Write dx_write,
                            std::array<Matrix<Accumulate<Scalar>>, layers> const& dweights,
                            std::array<Write, layers> const& dweight_writes,
                            std::array<Vector<Accumulate<Scalar>>, layers> const& dbiases,
                            std::array<Write, layers> const& dbias_writes, Accumulate<Scalar>* partial);

  /// Returns the number of elements that `backward_through_gelu` needs for x: all of x.
  [[nodiscard]] static Index recomputed_elements(Stream, Index rows, Index inputs) noexcept { return rows * inputs; }

  /// Computes `backward` for x = gelu(h) if only h was kept: recomputes x, and overwrites h with its gradient.
  template <class Scalar>
  static void backward_through_gelu(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar> h,
                                    Matrix<Scalar const> weight, Matrix<Accumulate<Scalar>> dweight,
                                    Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                                    Accumulate<Scalar>* partial, Scalar* recomputed);

 private:
  /// Returns the equal parts of a matrix's rows.
  template <std::size_t count, class Scalar>
  [[nodiscard]] static std::array<Matrix<Scalar>, count> parts(Matrix<Scalar> all) noexcept;
  /// Returns the distance of views at equal distances, in elements; 0 if all are null; nothing for other views.
  template <class View, std::size_t count>
  [[nodiscard]] static std::optional<Index> stride_of(std::array<View, count> const& views) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/linear/linear.icuh>
#endif
