// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/mean_squared_error.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// A block takes a chunk of slots.
template <class T, class U>
LOCKSTEP_CUDA_KERNEL void squared_errors(SequenceLayout<CudaSpace> layout, Index width, Index per_chunk,
                                         Accumulate<T> factor, T const* prediction, U const* target, double* losses,
                                         double* weights, T* gradient, Write write) {
  using Sum = Accumulate<T>;
  auto const chunk = BlockTeam::first(), end = min(layout.slots, (chunk + 1) * per_chunk) * width;
  double sum = 0, count = 0;
  for (auto i = chunk * per_chunk * width + BlockTeam::member(); i < end; i += BlockTeam::size) {
    if (!layout.is_token(i / width)) {
      if (gradient && write == Write::overwrite) gradient[i] = T{0};
      continue;
    }
    auto const difference = static_cast<Sum>(prediction[i]) - static_cast<Sum>(target[i]);
    sum += static_cast<double>(difference * difference);
    count += 1;
    if (!gradient) continue;
    Sum const here = product(2 * factor, difference);
    gradient[i] = static_cast<T>(write == Write::add ? static_cast<Sum>(gradient[i]) + here : here);
  }
  sum = BlockTeam::sum(sum);
  count = BlockTeam::sum(count);
  if (BlockTeam::member() > 0) return;
  losses[chunk] = sum * static_cast<double>(factor);
  weights[chunk] = count;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Functions and shapes as on the host, queued on the stream.
/// @determinism bitwise, run to run and on every GPU: no atomics, sums in a fixed order
template <>
struct MeanSquaredError<CudaSpace> {
  [[nodiscard]] static constexpr Index chunks(Index slots, Index width) noexcept {
    return MeanSquaredError<HostSpace>::chunks(slots, width);
  }

  template <class T, class U>
  static void forward_backward(memory::Stream<CudaSpace> stream, SequenceLayout<CudaSpace> layout, Accumulate<T> factor,
                               TensorView<T const, 2, CudaSpace> prediction, TensorView<U const, 2, CudaSpace> target,
                               TensorView<double, 1, CudaSpace> losses, TensorView<double, 1, CudaSpace> weights,
                               TensorView<T, 2, CudaSpace> gradient, Write write) {
    auto const width = prediction.extent[1];
    detail::launch_grid("kernel::MeanSquaredError", stream, static_cast<unsigned>(chunks(layout.slots, width)),
                        detail::threads_per_block, detail::squared_errors<T, U>, layout, width,
                        MeanSquaredError<HostSpace>::slots_per_chunk(width), factor, prediction.data, target.data,
                        losses.data, weights.data, gradient.data, write);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
