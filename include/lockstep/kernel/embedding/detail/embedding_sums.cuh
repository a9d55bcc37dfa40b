// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/embedding/detail/device_segment_plan.cuh>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Term of the sum over slots for the gradients of types, [segments, width] as one row.
template <class Stored, class Scalar>
struct TypeTerm {
  Assembly<CudaSpace> assembly;
  Index width;
  Stored const* d;

  __device__ void operator()(Index slot, Index column, Scalar (&sums)[1]) const {
    auto const row = assembly.layout.row_of(slot), token = slot - assembly.layout.start(row);
    if (token >= assembly.layout.tokens(row) || assembly.locate(row, token).segment != column / width) return;
    sums[0] += static_cast<Scalar>(d[slot * width + column % width]);
  }
};

/// A sequence's tokens as the start of one row [positions, width], for the gradients of positions that count tokens.
template <class Stored>
struct TokensOfRow {
  SequenceLayout<CudaSpace> layout;
  Index width;
  Stored const* d;

  /// Decides on the kind of layout once for all rows, so that their lengths are loaded at once.
  template <std::size_t count>
  __device__ void find(Index row, Index step, Index last, RowStart<Stored> (&parts)[count]) const noexcept {
    constexpr int size = static_cast<int>(count);
    if (layout.is_ragged()) {
      Index starts[count], ends[count];
      for_constants<size>([&](auto i) {
        starts[i] = layout.offsets.data[min(row + i * step, last)];
        ends[i] = layout.offsets.data[min(row + i * step, last) + 1];
      });
      for_constants<size>([&](auto i) { parts[i] = {d + starts[i] * width, (ends[i] - starts[i]) * width}; });
    } else {
      std::int32_t tokens[count];
      bool const full = layout.lengths.empty();
      for_constants<size>([&](auto i) {
        tokens[i] = full ? static_cast<std::int32_t>(layout.length) : layout.lengths.data[min(row + i * step, last)];
      });
      for_constants<size>([&](auto i) {
        parts[i] = {d + min(row + i * step, last) * layout.length * width, Index{tokens[i]} * width};
      });
    }
  }
};
/// Term of the sum over sequences for the gradients of positions that count steps, [positions, width] as one row.
template <class Stored, class Scalar>
struct StepTerm {
  Assembly<CudaSpace> assembly;
  Index width;
  Stored const* d;

  __device__ void operator()(Index row, Index column, Scalar (&sums)[1]) const {
    auto const step = column / width, c = column % width, start = assembly.layout.start(row);
    for (int segment = 0; segment < assembly.count; ++segment)
      if (step < assembly.segments[segment].tokens(row))
        sums[0] += static_cast<Scalar>(d[(start + assembly.token(row, {segment, step})) * width + c]);
  }
};

template <class Scalar>
LOCKSTEP_CUDA_KERNEL void zero_padding(SequenceLayout<CudaSpace> layout, Index width, Scalar* x) {
  for (auto i = grid_thread(); i < layout.slots * width; i += grid_threads())
    if (!layout.is_token(i / width)) x[i] = 0;
}

/// Returns the number of warps that share a chunk's channels.
template <class Stored>
[[nodiscard]] constexpr Index tiles_of_chunk(Index width) noexcept {
  constexpr Index channels = Index{warp} * elements_per_access<Stored>;
  return (width + channels - 1) / channels;
}

/// Sums the slots' dx of a chunk, in order: one tile of its channels per warp. Each lane knows one of the chunk's slots
/// and loads its channels of eight slots at once: whole groups if all are `wide`, otherwise element by element, with
/// equal results. If a row has only one chunk, its sum is the row's gradient. cub::DeviceReduce::ReduceByKey would need
/// the slots in the order of their rows, and one number per slot.
template <class Stored, class Scalar, bool wide>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, wide ? 3 : 1)
    sum_chunks(std::uint32_t const* order, std::uint32_t const* begin, std::uint32_t const* chunk_row,
               std::uint32_t const* first, std::int32_t const* rows, SegmentCount const* total, Index width,
               Stored const* dx, Scalar* partial, Scalar* gradient, Write write) {
  using Access = WidestAccess<Stored>;
  constexpr int at_once = 8;
  static_assert(SegmentPlan::chunk <= warp);
  auto const tiles = static_cast<unsigned>(tiles_of_chunk<Stored>(width));
  for (auto unit = grid_warp(); unit < Index{total->chunks} * tiles; unit += grid_warps()) {
    auto const c = unit / tiles;
    auto const channel = (unit % tiles * warp + lane()) * Access::size;
    auto const from = begin[c];
    auto const count = static_cast<int>(begin[c + 1] - from), own = static_cast<int>(lane());
    auto const row = chunk_row[c];
    auto const slot_of_this_lane = order[from + static_cast<unsigned>(min(own, count - 1))];
    bool const whole = first[row + 1] - first[row] == 1;
    Access const access(channel, width);
    typename Access::template Values<Scalar> sums = {};
    for (int i = 0; i < count; i += at_once) {
      typename Access::template Values<Stored> x[at_once];
      Stored const* slots[at_once];
      for_constants<at_once>(
          [&](auto k) { slots[k] = dx + __shfl_sync(~0u, slot_of_this_lane, min(i + k, count - 1)) * width; });
      if (channel >= width) continue;
      for_constants<at_once>([&](auto k) {
        if constexpr (wide)
          access.load_whole(slots[k], x[k]);
        else
          access.load(slots[k], x[k]);
      });
      for_constants<at_once>([&](auto k) {
        for (int j = 0; j < access.size; ++j) sums[j] += i + k < count ? static_cast<Scalar>(x[k][j]) : Scalar{0};
      });
    }
    if (channel < width)
      access.put(sums, whole ? gradient + rows[row] * width : partial + c * width, whole ? write : Write::overwrite);
  }
}
/// Sums the chunks of rows with several chunks. One block processes 32 channels of a row, 8 threads per channel, whose
/// sums are added in order.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_rows_of_chunks(std::uint32_t const* several, std::uint32_t const* first,
                                             std::int32_t const* rows, SegmentCount const* total, Index width,
                                             Scalar const* partial, Scalar* gradient, Write write) {
  auto const k = Index{blockIdx.y} * warp + lane();
  for (auto i = Index{blockIdx.x}; i < total->several; i += gridDim.x) {
    auto const row = several[i];
    Index const end = first[row + 1];
    Scalar sum = 0;
    if (k < width)
      for (auto c = first[row] + Index{threadIdx.x} / warp; c < end; c += warps_per_block)
        sum += partial[c * width + k];
    sum = sum_of_column(sum);
    if (threadIdx.x >= warp || k >= width) continue;
    auto& to = gradient[rows[row] * width + k];
    to = write == Write::add ? to + sum : sum;
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
