// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>

#include <lockstep/kernel/detail/device_segment_plan.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/fused_embedding.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// A thread takes 8 channels of a slot. An id outside the table gives nan: nobody waits for the device to ask.
template <class T>
LOCKSTEP_CUDA_KERNEL void embed(std::int32_t const* ids, std::int32_t const* lengths, Index slots, Index length,
                                Index width, T const* token, Index vocabulary, T const* position, Index most_positions,
                                DropoutMask mask, Index const* positions, T* out) {
  auto const groups = (width + 7) / 8;
  auto const scale = static_cast<T>(mask.scale());
  for (auto i = grid_thread(); i < slots * groups; i += grid_threads()) {
    auto const slot = i / groups, row = slot / length, t = slot % length;
    auto const first = i % groups * 8, last = min(first + 8, width);
    bool const is_token = t < lengths[row];
    Index const id = is_token ? ids[slot] : 0;
    bool const valid = id >= 0 && id < vocabulary && t < most_positions;
    MaskBits bits(mask, positions[row]);
    for (auto c = first; c < last; ++c) {
      T value = 0;
      if (is_token) {
        value = valid ? token[id * width + c] + position[t * width + c] : std::numeric_limits<T>::quiet_NaN();
        if (mask.active()) value = bits.keeps(t * width + c) ? product(value, scale) : T{0};
      }
      out[slot * width + c] = value;
    }
  }
}

/// A warp takes a chunk: the sum of its slots' dy, in order. The only chunk of a row is the row's gradient.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_chunks(std::uint32_t const* order, std::uint32_t const* begin,
                                     std::uint32_t const* chunk_row, std::uint32_t const* first,
                                     std::int32_t const* rows, SegmentCount const* total, Index width, T const* dy,
                                     T* partial, T* gradient, Write write) {
  auto const lane = static_cast<Index>(threadIdx.x % 32);
  for (auto c = grid_thread() / 32; c < total->chunks; c += grid_threads() / 32) {
    auto const row = chunk_row[c];
    bool const whole = first[row + 1] - first[row] == 1;
    auto* const to = whole ? gradient + rows[row] * width : partial + c * width;
    auto const from = begin[c], end = begin[c + 1];
    for (auto k = lane; k < width; k += 32) {
      T sum = whole && write == Write::add ? to[k] : T{0};
      for (auto i = from; i < end; ++i) sum += dy[order[i] * width + k];
      to[k] = sum;
    }
  }
}
/// A block takes a row of several chunks: their sums, in order.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_rows_of_chunks(std::uint32_t const* first, std::int32_t const* rows,
                                             SegmentCount const* total, Index width, T const* partial, T* gradient,
                                             Write write) {
  for (auto row = Index{blockIdx.x}; row < total->rows; row += gridDim.x) {
    auto const from = first[row], end = first[row + 1];
    if (end - from == 1) continue;
    auto* const to = gradient + rows[row] * width;
    for (auto k = Index{threadIdx.x}; k < width; k += blockDim.x) {
      T sum = write == Write::add ? to[k] : T{0};
      for (auto c = from; c < end; ++c) sum += partial[c * width + k];
      to[k] = sum;
    }
  }
}
/// A thread takes one channel of one position, over the batch's rows in order.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_positions(std::int32_t const* lengths, Index batch, Index length, Index most_positions,
                                        Index width, T const* dy, T* gradient, Write write) {
  for (auto i = grid_thread(); i < most_positions * width; i += grid_threads()) {
    auto const t = i / width, k = i % width;
    T sum = write == Write::add ? gradient[i] : T{0};
    if (t < length)
      for (Index r = 0; r < batch; ++r)
        if (t < lengths[r]) sum += dy[(r * length + t) * width + k];
    gradient[i] = sum;
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Functions, shapes and results as on the host, queued on the stream. Ids are not checked by an exception, which would
/// have to wait for the device: an id outside the table, or a token past the last position, gives nan.
/// Gradients are dense here: a context of this space gives out no touched rows.
/// @determinism bitwise, run to run and on every GPU: no atomics, sums in a fixed order
template <>
struct FusedEmbedding<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T, int Rank>
  using View = TensorView<T, Rank, CudaSpace>;

  struct Tokens {
    View<std::int32_t const, 2> ids;      // [rows, length]
    View<std::int32_t const, 1> lengths;  // [rows]

    [[nodiscard]] Index rows() const noexcept { return ids.extent[0]; }
    [[nodiscard]] Index length() const noexcept { return ids.extent[1]; }
  };
  using Plan = detail::DeviceSegmentPlan;

  /// @shape scratch: not used on a device
  static void plan(Stream stream, Tokens const& tokens, View<std::int32_t, 1>, Plan& plan) {
    plan.build(stream, tokens.ids.data, tokens.lengths.data, tokens.ids.size(), tokens.length(),
               std::numeric_limits<std::int32_t>::max());
  }

  template <class T>
  static void forward(Stream stream, Tokens const& tokens, View<T const, 2> token, View<T const, 2> position,
                      DropoutMask mask, View<Index const, 1> positions, View<T, 2> out) {
    auto const slots = tokens.ids.size(), width = out.extent[1];
    detail::launch("kernel::FusedEmbedding::forward", stream, slots * ((width + 7) / 8), detail::embed<T>,
                   tokens.ids.data, tokens.lengths.data, slots, tokens.length(), width, token.data, token.extent[0],
                   position.data, position.extent[0], mask, positions.data, out.data);
  }

  [[nodiscard]] static Index partial_rows(Tokens const&, Plan const& plan) noexcept { return plan.chunks(); }

  template <class T>
  static void backward_token(Stream stream, Plan const& plan, View<T const, 2> dy, View<T, 2> partial,
                             View<T, 2> gradient, Write write, TouchedRows const& = {}) {
    auto const width = gradient.extent[1];
    if (gradient.size() == 0) return;
    if (write == Write::overwrite)
      memory::check_cuda(
          cudaMemsetAsync(gradient.data, 0, static_cast<std::size_t>(gradient.size()) * sizeof(T), stream.get()),
          "cudaMemsetAsync");
    if (plan.chunks() == 0) return;
    auto const name = "kernel::FusedEmbedding::backward_token";
    detail::launch(name, stream, plan.chunks() * 32, detail::sum_chunks<T>, plan.order.data(), plan.begin.data(),
                   plan.chunk_row.data(), plan.first.data(), plan.rows.data(), plan.total.data(), width, dy.data,
                   partial.data, gradient.data, write);
    detail::launch(name, stream, plan.chunks() * 8, detail::sum_rows_of_chunks<T>, plan.first.data(), plan.rows.data(),
                   plan.total.data(), width, partial.data, gradient.data, write);
  }

  template <class T>
  static void backward_position(Stream stream, Tokens const& tokens, View<T const, 2> dy, View<T, 2> gradient,
                                Write write) {
    detail::launch("kernel::FusedEmbedding::backward_position", stream, gradient.size(), detail::sum_positions<T>,
                   tokens.lengths.data, tokens.rows(), tokens.length(), gradient.extent[0], gradient.extent[1], dy.data,
                   gradient.data, write);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
