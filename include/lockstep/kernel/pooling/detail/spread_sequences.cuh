// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// Each warp processes `together` adjacent slots: several at once if `lanes` lanes are enough for a slot. A lane finds
/// the sequence of one slot and shares it. It keeps its channels of a sequence for the sequence's further slots.
template <class Scalar, class Divisor>
LOCKSTEP_CUDA_KERNEL void spread(SequenceLayout<CudaSpace> layout, Index width, int lanes, int together,
                                 Divisor divisor, Scalar const* dy, Scalar* dx, Write write) {
  using Access = WidestAccess<Scalar>;
  using Sum = Accumulate<Scalar>;
  auto const at_once = static_cast<int>(warp) / lanes, own = static_cast<int>(lane()) / lanes;
  auto const first = static_cast<int>(lane()) % lanes * Access::size;
  for (auto begin = grid_warp() * together; begin < layout.slots; begin += grid_warps() * together) {
    auto const count = static_cast<int>(min(Index{together}, layout.slots - begin));
    auto const slot_of_this_lane = min(begin + lane(), layout.slots - 1), row = layout.row_of(slot_of_this_lane);
    auto const divisor_of_this_lane = divisor(row, slot_of_this_lane);
    for (Index tile = 0; tile < width; tile += Index{warp} * Access::size) {
      Access const access(tile + first, width);
      AccessNumbers<Scalar> values = {};
      Index row_of_values = -1;
      for (int k = own; k - own < count; k += at_once) {
        auto const source = min(k, count - 1);
        auto const from = __shfl_sync(~0u, row, source), parts = __shfl_sync(~0u, divisor_of_this_lane, source);
        if (k >= count || access.first() >= width) continue;
        auto* const to = dx + (begin + k) * width;
        if (parts == 0) {
          if (write == Write::overwrite) access.put(AccessNumbers<Scalar>{}, to);
          continue;
        }
        if (from != row_of_values) {
          access.load_as(dy + from * width, values);
          for (auto& value : values) value /= static_cast<Sum>(parts);
          row_of_values = from;
        }
        access.put(values, to, write);
      }
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Computes dx[slot] = dy[row] / d for the slots of each sequence, where d = divisor(row, slot), or zero if d is zero;
/// or adds it to dx.
/// @shape dy [layout.rows, width]   @shape dx [layout.slots, width]
template <class Scalar, class Divisor>
void spread_sequences(char const* name, memory::Stream<CudaSpace> stream, SequenceLayout<CudaSpace> layout, Index width,
                      Divisor const& divisor, Scalar const* dy, Scalar* dx, Write write) {
  constexpr Index busy = 8192;  // warps that a large device runs at once
  auto const groups =
      std::clamp<Index>((width + elements_per_access<Scalar> - 1) / elements_per_access<Scalar>, 1, warp);
  auto const lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(groups)));
  auto const share =
      static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp<Index>(layout.slots / busy, 1, warp))));
  auto const together = std::max(share, static_cast<int>(warp) / lanes);
  launch(name, stream, (layout.slots + together - 1) / together * Index{warp}, spread<Scalar, Divisor>, layout, width,
         lanes, together, divisor, dy, dx, write);
}

}}}  // namespace lockstep::kernel::detail
