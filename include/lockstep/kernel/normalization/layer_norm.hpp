// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/normalize_row.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/elementwise/channel_bias.hpp>
#include <lockstep/kernel/normalization/detail/residual_row.hpp>
#include <lockstep/kernel/normalization/residual.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Normalization of each row to mean 0 and variance 1, then an affine map of each column.
template <class Space>
struct LayerNorm : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct LayerNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Rows that share one partial sum of the parameters' gradients.
  static constexpr Index chunk_rows = 128;
  /// Whether `backward` sums dresidual's columns faster than a pass of its own. On a CPU, the layer that reads
  /// dresidual next sums it from the cache.
  static constexpr bool sums_dresidual = false;

  /// Computes sum = x + dropout(residual) and y = weight * (sum - mean(sum)) / sqrt(variance(sum) + epsilon) + bias.
  /// The backward pass needs `sum` and the `moments` of each row: its mean and the reciprocal of its deviation. Without
  /// a residual, `sum` is x and is not written. Null outputs are skipped; `sum` may be the residual.
  /// @shape x, residual, sum, y [rows, width]   @shape weight, bias [width]   @shape moments [rows, 2]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  /// @source Ba, Kiros, Hinton: Layer Normalization (2016)
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, HostSpace> residual,
                      Vector<Scalar const> weight, Vector<Scalar const> bias, Scalar epsilon, Matrix<Scalar> sum,
                      Matrix<Accumulate<Scalar>> moments, Matrix<Scalar> y);

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index width) noexcept {
    return std::max<Index>(1, (rows + chunk_rows - 1) / chunk_rows) * 2 * width;
  }

  /// Computes the gradients. Let g = dy * weight and normalized = (sum - mean) * reciprocal. The gradient of the sum is
  /// ds = reciprocal * (g - mean(g) - normalized * mean(g * normalized)); dx = ds and dresidual = dropout(ds).
  /// dweight is the sum over rows of dy * normalized, and dbias the sum over rows of dy. Overwrites or adds to each.
  /// Skips a null dx or dresidual. dx may be dy, which it then overwrites. Also sums the rows of dresidual, as stored,
  /// unless `dresidual_sums` is null: the gradient of a bias that was added to the residual. It then must not be null
  /// or added to.
  /// @shape dy, sum, dx, dresidual [rows, width]   @shape moments [rows, 2]
  /// @shape weight, dweight, dbias, dresidual_sums [width]
  /// @shape partial [partial_elements(rows, width)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Matrix<Accumulate<Scalar> const> moments, Residual<Scalar, HostSpace> residual,
                       Vector<Scalar const> weight, Matrix<Scalar> dx, Write dx_write, Matrix<Scalar> dresidual,
                       Write dresidual_write, Vector<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias,
                       Write dbias_write, Scalar* partial, Vector<Scalar> dresidual_sums = {},
                       Write dresidual_sums_write = Write::overwrite);

 private:
  static constexpr Index block = 256;    // elements whose gradient is kept until their mask is applied
  static constexpr Index rows_near = 4;  // rows that are added to their residuals and normalized while in cache
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/layer_norm.ipp>
#endif
