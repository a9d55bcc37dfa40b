// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <lockstep/kernel/detail/device_segment_plan.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/neighbours.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/embedding_gradients.hpp>
#include <lockstep/kernel/embedding_inputs.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// Channels that the lanes of a warp take at once.
inline constexpr Index channels_per_warp = Index{warp} * MaskedNeighbours::size;

/// A slot, seen by one thread: which token it is, and how its channels come about. A thread takes the channels that a
/// block of random bits is for.
template <class T>
struct EmbeddingSlot {
  using Inputs = EmbeddingInputs<T, CudaSpace>;
  using Here = MaskedNeighbours;
  using Channels = Here::Values<T>;

  Inputs const& in;
  Index width, slot, row, token;
  bool is_token;
  typename Assembly<CudaSpace>::Place place{0, 0};

  __device__ EmbeddingSlot(Inputs const& inputs, Index channels, Index at)
      : in(inputs),
        width(channels),
        slot(at),
        row(inputs.assembly.layout.row_of(at)),
        token(at - inputs.assembly.layout.start(row)),
        is_token(token < inputs.assembly.layout.tokens(row)) {
    if (is_token) place = in.assembly.place(row, token);
  }

  /// Whether a lane of a warp has more channels than it keeps, and makes them again for each pass.
  [[nodiscard]] __device__ bool is_wide() const { return width > channels_per_warp; }
  [[nodiscard]] __device__ Index position() const { return in.counted == Counted::tokens ? token : place.step; }

  /// The token before normalisation. An id outside its table gives nan: nobody waits for the device to ask.
  __device__ void sum_of_parts(Here const& here, Channels& x) const {
    auto const entry = in.assembly.entry(row, place);
    bool valid = true, empty = true;
    auto const add = [&](T const* from) {
      Channels y;
      here.load(from, y);
      for (int j = 0; j < here.size; ++j) x[j] = empty ? y[j] : x[j] + y[j];
      empty = false;
    };
    for (int p = in.first_part[place.segment]; p < in.first_part[place.segment + 1]; ++p) {
      auto const& part = in.parts[p];
      Index const index = part.is_table ? static_cast<Index>(part.ids[entry]) : entry;
      if (index >= 0 && index < part.rows.extent[0])
        add(part.rows.data + index * width);
      else
        valid = false;
    }
    if (in.scale != T(1))
      for (auto& value : x) value = product(value, in.scale);
    if (in.position.data) {
      if (position() < in.position.extent[0])
        add(in.position.data + position() * width);
      else
        valid = false;
    }
    if (in.type.data) add(in.type.data + place.segment * width);
    if (!valid)
      for (auto& value : x) value = std::numeric_limits<T>::quiet_NaN();
  }
  /// x through dropout.
  __device__ void drop(Here const& here, Channels& x) const {
    if (!in.mask.active()) return;
    MaskBits bits(in.mask, in.assembly.layout.positions.data[row]);
    auto const scale = static_cast<T>(in.mask.scale());
    auto const first = token * width + here.first();
    for (int j = 0; j < here.size; ++j) x[j] = bits.keeps(first + j) ? product(x[j], scale) : T{0};
  }
  /// dy through dropout.
  template <class Stored>
  __device__ void load_gradient(Stored const* dy, Here const& here, Channels& d) const {
    here.load_as(dy + slot * width, d);
    drop(here, d);
  }
  /// The gradient of the sum of parts, before scaling, to dx, which may be null; scaled, to the dense parts.
  __device__ void put_gradient(Here const& here, Channels const& d, T* dx,
                               EmbeddingGradients<T, CudaSpace> const& targets) const {
    if (dx) here.store(d, dx + slot * width);
    auto const entry = in.assembly.entry(row, place);
    for (int p = in.first_part[place.segment]; p < in.first_part[place.segment + 1]; ++p) {
      auto const target = targets.dense[p];
      if (!target.data) continue;
      Channels scaled;
      for (int j = 0; j < here.size; ++j) scaled[j] = product(in.scale, d[j]);
      here.put(scaled, target.data + entry * width, target.write);
    }
  }
};

/// Mean and reciprocal deviation of a token, by a whole warp; and, of its gradients times the weight, what the norm's
/// backward takes away from each. Leaves in x the channels of a lane, where those are all that it has.
template <class T>
struct TokenMoments {
  T mean = 0, reciprocal = 1, gradient = 0, projection = 0;

  TokenMoments() = default;
  __device__ TokenMoments(EmbeddingSlot<T> const& slot, typename EmbeddingSlot<T>::Channels& x) {
    auto const count = static_cast<T>(slot.width);
    bool const centred = slot.in.norm == Norm::layer;
    if (centred) {
      T sum = 0;
      for (auto first = lane() * MaskedNeighbours::size; first < slot.width; first += channels_per_warp) {
        MaskedNeighbours const here(first, slot.width);
        slot.sum_of_parts(here, x);
        for (int j = 0; j < here.size; ++j) sum += here.has(j) ? x[j] : T{0};
      }
      mean = warp_sum(sum) / count;
    }
    T squares = 0;
    for (auto first = lane() * MaskedNeighbours::size; first < slot.width; first += channels_per_warp) {
      MaskedNeighbours const here(first, slot.width);
      if (!centred || slot.is_wide()) slot.sum_of_parts(here, x);
      for (int j = 0; j < here.size; ++j)
        if (here.has(j)) squares += (x[j] - mean) * (x[j] - mean);
    }
    reciprocal = 1 / std::sqrt(warp_sum(squares) / count + slot.in.epsilon);
  }
  template <class Stored>
  __device__ TokenMoments(EmbeddingSlot<T> const& slot, typename EmbeddingSlot<T>::Channels& x, Stored const* dy)
      : TokenMoments(slot, x) {
    auto const count = static_cast<T>(slot.width);
    typename EmbeddingSlot<T>::Channels d, weight;
    for (auto first = lane() * MaskedNeighbours::size; first < slot.width; first += channels_per_warp) {
      MaskedNeighbours const here(first, slot.width);
      slot.load_gradient(dy, here, d);
      if (slot.is_wide()) slot.sum_of_parts(here, x);
      here.load(slot.in.weight.data, weight);
      for (int j = 0; j < here.size; ++j) {
        if (!here.has(j)) continue;
        gradient += d[j] * weight[j];
        projection += d[j] * weight[j] * normalized(x[j]);
      }
    }
    gradient = slot.in.norm == Norm::layer ? warp_sum(gradient) / count : T{0};
    projection = warp_sum(projection) / count;
  }

  [[nodiscard]] __device__ T normalized(T x) const { return (x - mean) * reciprocal; }
  /// Those that a lane of the warp holds.
  [[nodiscard]] __device__ TokenMoments of_lane(int source) const {
    TokenMoments other;
    other.mean = __shfl_sync(~0u, mean, source);
    other.reciprocal = __shfl_sync(~0u, reciprocal, source);
    other.gradient = __shfl_sync(~0u, gradient, source);
    other.projection = __shfl_sync(~0u, projection, source);
    return other;
  }
};

/// A thread takes some channels of a slot.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_slots(EmbeddingInputs<T, CudaSpace> in, Index width, Stored* out) {
  auto const groups = mask_groups(width);
  for (auto i = grid_thread(); i < in.assembly.layout.slots * groups; i += grid_threads()) {
    EmbeddingSlot<T> const slot(in, width, i / groups);
    MaskedNeighbours const here(i % groups * MaskedNeighbours::size, width);
    typename EmbeddingSlot<T>::Channels x = {};
    if (slot.is_token) {
      slot.sum_of_parts(here, x);
      slot.drop(here, x);
    }
    here.put(x, out + slot.slot * width);
  }
}

/// The same with a norm: a warp takes a slot.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_normalized_slots(EmbeddingInputs<T, CudaSpace> in, Index width, Stored* out) {
  for (auto at = grid_warp(); at < in.assembly.layout.slots; at += grid_warps()) {
    EmbeddingSlot<T> const slot(in, width, at);
    typename EmbeddingSlot<T>::Channels x = {}, factors;
    TokenMoments<T> const moments = slot.is_token ? TokenMoments<T>(slot, x) : TokenMoments<T>();
    for (auto first = lane() * MaskedNeighbours::size; first < width; first += channels_per_warp) {
      MaskedNeighbours const here(first, width);
      if (slot.is_token) {
        if (slot.is_wide()) slot.sum_of_parts(here, x);
        here.load(in.weight.data, factors);
        for (int j = 0; j < here.size; ++j) x[j] = factors[j] * moments.normalized(x[j]);
        if (in.bias.data) {
          here.load(in.bias.data, factors);
          for (int j = 0; j < here.size; ++j) x[j] += factors[j];
        }
        slot.drop(here, x);
      }
      here.put(x, out + at * width);
    }
  }
}

/// A thread takes some channels of a slot: their gradients, to dx and to dense parts.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_slots_backward(EmbeddingInputs<T, CudaSpace> in,
                                               EmbeddingGradients<T, CudaSpace> targets, Index width, Stored const* dy,
                                               T* dx) {
  auto const groups = mask_groups(width);
  for (auto i = grid_thread(); i < in.assembly.layout.slots * groups; i += grid_threads()) {
    EmbeddingSlot<T> const slot(in, width, i / groups);
    if (!slot.is_token) continue;
    MaskedNeighbours const here(i % groups * MaskedNeighbours::size, width);
    typename EmbeddingSlot<T>::Channels d;
    slot.load_gradient(dy, here, d);
    slot.put_gradient(here, d, dx, targets);
  }
}

/// Slots that a warp takes in the backward of a norm: no more than it has lanes, and of their number alone.
[[nodiscard]] constexpr Index slots_per_warp(Index slots) noexcept { return std::clamp<Index>(slots / 2048, 4, warp); }
[[nodiscard]] constexpr Index norm_chunks(Index slots) noexcept {
  return (slots + slots_per_warp(slots) - 1) / slots_per_warp(slots);
}

/// The same with a norm: a warp takes a chunk of slots, and leaves the sums over them for the weight and, after those
/// of all chunks, for the bias.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 2)  // blocks that a multiprocessor has registers for
    embed_normalized_slots_backward(EmbeddingInputs<T, CudaSpace> in, EmbeddingGradients<T, CudaSpace> targets,
                                    Index width, Stored const* dy, T* dx, T* sums) {
  auto const slots = in.assembly.layout.slots, chunks = norm_chunks(slots);
  for (auto chunk = grid_warp(); chunk < chunks; chunk += grid_warps()) {
    auto const begin = chunk * slots_per_warp(slots);
    auto const count = static_cast<int>(min(slots - begin, slots_per_warp(slots)));
    TokenMoments<T> of_this_lane;
    for (int k = 0; k < count; ++k) {
      EmbeddingSlot<T> const slot(in, width, begin + k);
      typename EmbeddingSlot<T>::Channels x = {};
      TokenMoments<T> const moments = slot.is_token ? TokenMoments<T>(slot, x, dy) : TokenMoments<T>();
      if (k == static_cast<int>(lane())) of_this_lane = moments;
    }
    for (Index group = 0; group < width; group += channels_per_warp) {
      MaskedNeighbours const here(group + lane() * MaskedNeighbours::size, width);
      typename EmbeddingSlot<T>::Channels x = {}, d, weight, of_weight = {}, of_bias = {};
      here.load(in.weight.data, weight);
      for (int k = 0; k < count; ++k) {
        auto const moments = of_this_lane.of_lane(k);
        EmbeddingSlot<T> const slot(in, width, begin + k);
        if (!slot.is_token) continue;
        slot.load_gradient(dy, here, d);
        slot.sum_of_parts(here, x);
        for (int j = 0; j < here.size; ++j) {
          auto const normalized = moments.normalized(x[j]);
          of_weight[j] += d[j] * normalized;
          of_bias[j] += d[j];
          d[j] = moments.reciprocal * (d[j] * weight[j] - moments.gradient - normalized * moments.projection);
        }
        slot.put_gradient(here, d, dx, targets);
      }
      here.store(of_weight, sums + chunk * width);
      here.store(of_bias, sums + (chunks + chunk) * width);
    }
  }
}

/// A term of the sum over slots for the gradients of types, [segments, width] as if it were one row.
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

/// A term of the sum over sequences for the gradients of positions, [positions, width] as if it were one row, where
/// tokens are counted.
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
/// The same where steps are.
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

/// A warp takes a chunk, a lane some channels: the sum of its slots' dx, in order. The only chunk of a row is the row's
/// gradient.
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
/// A block takes 32 channels of a row of several chunks, 8 threads a channel: their sums, in order.
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
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
