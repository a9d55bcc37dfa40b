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
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Residual<T, CudaSpace> residual,
                      Vector<Accumulate<T> const> weight, Vector<Accumulate<T> const> bias, Accumulate<T> epsilon,
                      Matrix<T> sum, Matrix<Accumulate<T>> moments, Matrix<T> y) {
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
                                               statistics<Accumulate<T>>(moments), y.data);
  }

  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index width) noexcept {
    return 2 * detail::row_partials(rows, width);
  }

  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> sum, Matrix<Accumulate<T> const> moments,
                       Residual<T, CudaSpace> residual, Vector<Accumulate<T> const> weight, Matrix<T> dx,
                       Write dx_write, Matrix<T> dresidual, Write dresidual_write, Vector<Accumulate<T>> dweight,
                       Write dweight_write, Vector<Accumulate<T>> dbias, Write dbias_write, Accumulate<T>* partial) {
    detail::differentiate_norm<detail::Centering::mean>(
        "kernel::LayerNorm::backward", stream,
        detail::NormGradients<T>{dy.extent[0], dy.extent[1], dy.data, sum.data,
                                 statistics<Accumulate<T> const>(moments), nullptr, residual.dropout, weight.data,
                                 dx.data, dx_write, dresidual.data, dresidual_write},
        partial, {dweight.data, dweight_write}, {dbias.data, dbias_write});
  }

 private:
  template <class S>
  [[nodiscard]] static detail::RowStatistics<S> statistics(Matrix<S> moments) noexcept {
    return {moments.data, moments.data ? moments.data + 1 : nullptr, 2};
  }
};

}}}  // namespace lockstep::kernel
