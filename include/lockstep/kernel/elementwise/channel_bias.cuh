// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/elementwise/channel_bias.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. The bias's gradient is summed in other
/// chunks, and is float for 16-bit activations.
/// @determinism bitwise
template <>
struct ChannelBias<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Vector<Scalar const> bias, Matrix<Scalar> y) {
    using Sum = Accumulate<Scalar>;
    detail::for_elements("kernel::ChannelBias::forward", stream, y.size(), [=] __device__(Index i) {
      y.data[i] = static_cast<Scalar>(static_cast<Sum>(y.data[i]) + static_cast<Sum>(bias.data[i % y.extent[1]]));
    });
  }

  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept {
    return detail::column_partials(rows, channels);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Vector<Accumulate<Scalar>> dbias, Write write,
                       Accumulate<Scalar>* partial) {
    detail::sum_matrix_columns("kernel::ChannelBias::backward", stream, dy.extent[0], dy.extent[1], dy.data, partial,
                               {dbias.data, write});
  }
};

}}}  // namespace lockstep::kernel
