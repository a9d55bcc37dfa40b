// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/channel_scale.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. Factors and their gradient are in the type
/// of the computation.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; gradients of factors differ from
/// the host's by rounding
template <>
struct ChannelScale<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void run(Stream stream, Vector<Accumulate<Scalar> const> factors, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Write write) {
    auto const channels = y.extent[1];
    detail::for_vectorized<Scalar>("kernel::ChannelScale::run", stream, y.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> values;
                                     access.load_as(x.data, values);
                                     auto c = access.first() % channels;
                                     for (auto& value : values) {
                                       value = detail::rounded_product(value, factors.data[c]);
                                       c = c + 1 < channels ? c + 1 : 0;
                                     }
                                     access.put(values, y.data, write);
                                   });
  }

  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept {
    return detail::column_partials(rows, channels);
  }

  template <class Scalar>
  static void factors_backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                               Vector<Accumulate<Scalar>> dfactors, Write write, Accumulate<Scalar>* partial) {
    using Sum = Accumulate<Scalar>;
    auto const channels = x.extent[1];
    detail::sum_columns<Sum, 1>("kernel::ChannelScale::factors_backward", stream, x.extent[0], channels,
                                [=] __device__(Index row, Index c, Sum * sums) {
                                  auto const at = row * channels + c;
                                  sums[0] += static_cast<Sum>(dy.data[at]) * static_cast<Sum>(x.data[at]);
                                },
                                partial, {dfactors.data, write});
  }
};

}}}  // namespace lockstep::kernel
