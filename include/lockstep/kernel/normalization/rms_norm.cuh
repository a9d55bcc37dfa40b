// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/normalization/detail/norm_rows.cuh>
#include <lockstep/kernel/normalization/rms_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct RMSNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, CudaSpace> residual,
                      Vector<Accumulate<Scalar> const> weight, Accumulate<Scalar> epsilon, Matrix<Scalar> sum,
                      Vector<Accumulate<Scalar>> reciprocals, Matrix<Scalar> y) {
    auto const width = x.extent[1];
    expect<ShapeError>(weight.extent[0] == width, [&] {
      return "RMSNorm: rows have " + std::to_string(width) + " elements and weight has " +
             std::to_string(weight.size());
    });
    expect<ShapeError>(!residual.value.data || residual.value.extent == x.extent, [&] {
      return "RMSNorm: x is " + to_string(x.extent) + " and the residual " + to_string(residual.value.extent);
    });
    detail::normalize<detail::Centering::none>(
        "kernel::RMSNorm::forward", stream, x.extent[0], width, x.data, residual, weight.data,
        static_cast<Accumulate<Scalar> const*>(nullptr), epsilon, sum.data,
        detail::RowStatistics<Accumulate<Scalar>>{nullptr, reciprocals.data, 1}, y.data);
  }

  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index width) noexcept {
    return detail::row_partials(rows, width);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Vector<Accumulate<Scalar> const> reciprocals, Matrix<Scalar const> other_gradient,
                       RowDropout<CudaSpace> dropout, Vector<Accumulate<Scalar> const> weight, Matrix<Scalar> dx,
                       Write dx_write, Matrix<Scalar> dresidual, Write dresidual_write,
                       Vector<Accumulate<Scalar>> dweight, Write dweight_write, Accumulate<Scalar>* partial) {
    detail::differentiate_norm<detail::Centering::none>(
        "kernel::RMSNorm::backward", stream,
        detail::NormGradients<Scalar>{dy.extent[0], dy.extent[1], dy.data, sum.data,
                                      detail::RowStatistics<Accumulate<Scalar> const>{nullptr, reciprocals.data, 1},
                                      other_gradient.data, dropout, weight.data, dx.data, dx_write, dresidual.data,
                                      dresidual_write},
        partial, {dweight.data, dweight_write});
  }
};

}}}  // namespace lockstep::kernel
