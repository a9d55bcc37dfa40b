// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/normalization/detail/norm_rows.cuh>
#include <lockstep/kernel/normalization/layer_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct LayerNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, CudaSpace> residual,
                      Vector<Accumulate<Scalar> const> weight, Vector<Accumulate<Scalar> const> bias,
                      Accumulate<Scalar> epsilon, Matrix<Scalar> sum, Matrix<Accumulate<Scalar>> moments,
                      Matrix<Scalar> y) {
    auto const width = x.extent[1];
    expect<ShapeError>(weight.extent[0] == width && bias.extent[0] == width, [&] {
      return "LayerNorm: rows have " + std::to_string(width) + " elements, weight has " +
             std::to_string(weight.size()) + " and bias " + std::to_string(bias.size());
    });
    expect<ShapeError>(!residual.value.data || residual.value.extent == x.extent, [&] {
      return "LayerNorm: x is " + to_string(x.extent) + " and the residual " + to_string(residual.value.extent);
    });
    detail::normalize<detail::Centering::mean>("kernel::LayerNorm::forward", stream, x.extent[0], width, x.data,
                                               residual, weight.data, bias.data, epsilon, sum.data,
                                               statistics<Accumulate<Scalar>>(moments), y.data);
  }

  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index width) noexcept {
    return 2 * detail::row_partials(rows, width);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Matrix<Accumulate<Scalar> const> moments, Residual<Scalar, CudaSpace> residual,
                       Vector<Accumulate<Scalar> const> weight, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Scalar> dresidual, Write dresidual_write, Vector<Accumulate<Scalar>> dweight,
                       Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                       Accumulate<Scalar>* partial) {
    detail::differentiate_norm<detail::Centering::mean>(
        "kernel::LayerNorm::backward", stream,
        detail::NormGradients<Scalar>{dy.extent[0], dy.extent[1], dy.data, sum.data,
                                      statistics<Accumulate<Scalar> const>(moments), nullptr, residual.dropout,
                                      weight.data, dx.data, dx_write, dresidual.data, dresidual_write},
        partial, {dweight.data, dweight_write}, {dbias.data, dbias_write});
  }

 private:
  template <class Statistic>
  [[nodiscard]] static detail::RowStatistics<Statistic> statistics(Matrix<Statistic> moments) noexcept {
    return {moments.data, moments.data ? moments.data + 1 : nullptr, 2};
  }
};

}}}  // namespace lockstep::kernel
