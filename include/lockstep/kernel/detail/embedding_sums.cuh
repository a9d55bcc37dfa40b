// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/device_segment_plan.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/neighbours.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/embedding_inputs.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Term of the sum over slots for the gradients of types, [segments, width] as one row.
template <class Stored, class T>
struct OfType {
  Assembly<CudaSpace> assembly;
  Index width;
  Stored const* d;

  __device__ void operator()(Index slot, Index column, T (&sums)[1]) const {
    auto const row = assembly.layout.row_of(slot), token = slot - assembly.layout.start(row);
    if (token >= assembly.layout.tokens(row) || assembly.place(row, token).segment != column / width) return;
    sums[0] += static_cast<T>(d[slot * width + column % width]);
  }
};

/// Term of the sum over sequences for the gradients of positions, [positions, width] as one row, if positions count
/// tokens.
template <class Stored, class T>
struct OfPosition {
  SequenceLayout<CudaSpace> layout;
  Index width;
  Stored const* d;

  __device__ void operator()(Index row, Index column, T (&sums)[1]) const {
    auto const at = layout.start(row) * width + column;
    sums[0] += column < layout.tokens(row) * width ? static_cast<T>(d[at]) : T{0};
  }
};
/// Term for positions that count steps.
template <class Stored, class T>
struct OfStep {
  Assembly<CudaSpace> assembly;
  Index width;
  Stored const* d;

  __device__ void operator()(Index row, Index column, T (&sums)[1]) const {
    auto const step = column / width, c = column % width, start = assembly.layout.start(row);
    for (int segment = 0; segment < assembly.count; ++segment)
      if (step < assembly.segments[segment].tokens(row))
        sums[0] += static_cast<T>(d[(start + assembly.token(row, {segment, step})) * width + c]);
  }
};

template <class T>
LOCKSTEP_CUDA_KERNEL void zero_padding(SequenceLayout<CudaSpace> layout, Index width, T* x) {
  for (auto i = grid_thread(); i < layout.slots * width; i += grid_threads())
    if (!layout.is_token(i / width)) x[i] = 0;
}

/// Sums the slots' dx of one chunk per warp, in order; a lane processes some channels. If a row has only one chunk, its
/// sum is the row's gradient.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void sum_chunks(std::uint32_t const* order, std::uint32_t const* begin,
                                     std::uint32_t const* chunk_row, std::uint32_t const* first,
                                     std::int32_t const* rows, SegmentCount const* total, Index width, Stored const* dx,
                                     T* partial, T* gradient, Write write) {
  using Here = NeighboursOf<T>;
  for (auto c = grid_warp(); c < total->chunks; c += grid_warps()) {
    auto const row = chunk_row[c];
    bool const whole = first[row + 1] - first[row] == 1;
    auto* const to = whole ? gradient + rows[row] * width : partial + c * width;
    auto const from = begin[c], end = begin[c + 1];
    for (auto k = lane() * Here::size; k < width; k += warp * Here::size) {
      Here const here(k, width);
      typename Here::template Values<T> sums = {}, x;
      for (auto i = from; i < end; ++i) {
        here.load_as(dx + order[i] * width, x);
        for (int j = 0; j < here.size; ++j) sums[j] += x[j];
      }
      here.put(sums, to, whole ? write : Write::overwrite);
    }
  }
}
/// Sums the chunks of rows with several chunks. One block processes 32 channels of a row, 8 threads per channel, whose
/// sums are added in order.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_rows_of_chunks(std::uint32_t const* several, std::uint32_t const* first,
                                             std::int32_t const* rows, SegmentCount const* total, Index width,
                                             T const* partial, T* gradient, Write write) {
  auto const k = Index{blockIdx.y} * warp + lane();
  for (auto i = Index{blockIdx.x}; i < total->several; i += gridDim.x) {
    auto const row = several[i];
    Index const end = first[row + 1];
    T sum = 0;
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
