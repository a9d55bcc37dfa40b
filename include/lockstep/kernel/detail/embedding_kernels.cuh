// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include <lockstep/kernel/detail/device_segment_plan.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/embedding_gradients.hpp>
#include <lockstep/kernel/embedding_inputs.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

inline constexpr int channels_per_thread = 8;

/// A slot, seen by one thread: which token it is, and how its channels come about.
template <class T>
struct EmbeddingSlot {
  using Inputs = EmbeddingInputs<T, CudaSpace>;
  using Channels = T[channels_per_thread];

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

  /// f(j, c) for the channels c = first + j that there are.
  template <class F>
  __device__ void each(Index first, F const& f) const {
    for (int j = 0; j < channels_per_thread; ++j)
      if (first + j < width) f(j, first + j);
  }
  [[nodiscard]] __device__ Index position() const { return in.counted == Counted::tokens ? token : place.step; }

  /// The token before normalisation. An id outside its table gives nan: nobody waits for the device to ask.
  __device__ void sum_of_parts(Index first, Channels& x) const {
    auto const entry = in.assembly.entry(row, place);
    bool valid = true, empty = true;
    auto const add = [&](T const* from) {
      each(first, [&](int j, Index c) { x[j] = empty ? from[c] : x[j] + from[c]; });
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
    if (in.scale != T(1)) each(first, [&](int j, Index) { x[j] = product(x[j], in.scale); });
    if (in.position.data) {
      if (position() < in.position.extent[0])
        add(in.position.data + position() * width);
      else
        valid = false;
    }
    if (in.type.data) add(in.type.data + place.segment * width);
    if (!valid) each(first, [&](int j, Index) { x[j] = std::numeric_limits<T>::quiet_NaN(); });
  }
  /// dy through dropout.
  template <class Stored>
  __device__ void dropped(Stored const* dy, Index first, Channels& d) const {
    MaskBits bits(in.mask, in.assembly.layout.positions.data ? in.assembly.layout.positions.data[row] : 0);
    auto const scale = static_cast<T>(in.mask.scale());
    each(first, [&](int j, Index c) {
      auto const value = static_cast<T>(dy[slot * width + c]);
      bool const keep = !in.mask.active() || bits.keeps(token * width + c);
      d[j] = keep ? (in.mask.active() ? product(value, scale) : value) : T{0};
    });
  }
};

/// Mean and reciprocal deviation of a token, by a whole warp.
template <class T>
struct TokenMoments {
  T mean = 0, reciprocal = 1;

  TokenMoments() = default;
  __device__ explicit TokenMoments(EmbeddingSlot<T> const& slot) {
    constexpr Index step = Index{warp} * channels_per_thread;
    auto const count = static_cast<T>(slot.width);
    typename EmbeddingSlot<T>::Channels x;
    if (slot.in.norm == Norm::layer) {
      T sum = 0;
      for (auto first = lane() * channels_per_thread; first < slot.width; first += step) {
        slot.sum_of_parts(first, x);
        slot.each(first, [&](int j, Index) { sum += x[j]; });
      }
      mean = warp_sum(sum) / count;
    }
    T squares = 0;
    for (auto first = lane() * channels_per_thread; first < slot.width; first += step) {
      slot.sum_of_parts(first, x);
      slot.each(first, [&](int j, Index) { squares += (x[j] - mean) * (x[j] - mean); });
    }
    reciprocal = 1 / std::sqrt(warp_sum(squares) / count + slot.in.epsilon);
  }
};

/// A thread takes 8 channels of a slot.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_slots(EmbeddingInputs<T, CudaSpace> in, Index width, Stored* out) {
  auto const groups = (width + channels_per_thread - 1) / channels_per_thread;
  for (auto i = grid_thread(); i < in.assembly.layout.slots * groups; i += grid_threads()) {
    EmbeddingSlot<T> const slot(in, width, i / groups);
    auto const first = i % groups * channels_per_thread;
    T x[channels_per_thread] = {};
    if (slot.is_token) slot.sum_of_parts(first, x);
    auto* const to = out + slot.slot * width;
    if (in.mask.active() && slot.is_token) {
      MaskBits bits(in.mask, in.assembly.layout.positions.data[slot.row]);
      auto const scale = static_cast<T>(in.mask.scale());
      slot.each(first, [&](int j, Index c) {
        to[c] = static_cast<Stored>(bits.keeps(slot.token * width + c) ? product(x[j], scale) : T{0});
      });
    } else {
      slot.each(first, [&](int j, Index c) { to[c] = static_cast<Stored>(x[j]); });
    }
  }
}

/// The same with a norm: a warp takes a slot.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_normalized_slots(EmbeddingInputs<T, CudaSpace> in, Index width, Stored* out) {
  constexpr Index step = Index{warp} * channels_per_thread;
  for (auto at = grid_warp(); at < in.assembly.layout.slots; at += grid_warps()) {
    EmbeddingSlot<T> const slot(in, width, at);
    auto* const to = out + at * width;
    if (!slot.is_token) {
      for (auto c = lane(); c < width; c += warp) to[c] = Stored{0};
      continue;
    }
    TokenMoments<T> const moments(slot);
    auto const scale = static_cast<T>(in.mask.scale());
    for (auto first = lane() * channels_per_thread; first < width; first += step) {
      T x[channels_per_thread];
      slot.sum_of_parts(first, x);
      MaskBits bits(in.mask, in.mask.active() ? in.assembly.layout.positions.data[slot.row] : 0);
      slot.each(first, [&](int j, Index c) {
        T y = in.weight.data[c] * ((x[j] - moments.mean) * moments.reciprocal);
        if (in.bias.data) y += in.bias.data[c];
        if (in.mask.active()) y = bits.keeps(slot.token * width + c) ? product(y, scale) : T{0};
        to[c] = static_cast<Stored>(y);
      });
    }
  }
}

/// Which rows of a chunk's sums hold what.
struct EmbeddingSums {
  static constexpr Index slots_per_chunk = 16;
  Index weight = 0, bias = 0, rows = 0;  // types come first
  template <class T>
  __host__ __device__ explicit EmbeddingSums(EmbeddingInputs<T, CudaSpace> const& in) {
    weight = in.type.data ? in.assembly.count : 0;
    bias = weight + 1;
    rows = in.norm == Norm::none ? weight : bias + 1;
  }
};

/// A warp takes 16 slots, a thread always the same channels of them: the gradient of the sum of parts, before scaling,
/// to dx; to dense parts; and the sums over its slots for types, weight and bias.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void embed_slots_backward(EmbeddingInputs<T, CudaSpace> in,
                                               EmbeddingGradients<T, CudaSpace> targets, Index width, Stored const* dy,
                                               T* dx, T* memory) {
  constexpr Index step = Index{warp} * channels_per_thread;
  EmbeddingSums const at(in);
  auto const slots = in.assembly.layout.slots;
  auto const chunks = (slots + EmbeddingSums::slots_per_chunk - 1) / EmbeddingSums::slots_per_chunk;
  for (auto chunk = grid_warp(); chunk < chunks; chunk += grid_warps()) {
    auto* const sums = memory + chunk * at.rows * width;
    for (Index r = 0; r < at.rows; ++r)
      for (auto first = lane() * channels_per_thread; first < width; first += step)
        for (auto c = first; c < min(first + channels_per_thread, width); ++c) sums[r * width + c] = 0;
    auto const end = min((chunk + 1) * EmbeddingSums::slots_per_chunk, slots);
    for (auto number = chunk * EmbeddingSums::slots_per_chunk; number < end; ++number) {
      EmbeddingSlot<T> const slot(in, width, number);
      if (!slot.is_token) continue;
      T d[channels_per_thread], x[channels_per_thread];
      T mean_g = 0, mean_gx = 0;
      TokenMoments<T> moments = in.norm == Norm::none ? TokenMoments<T>{} : TokenMoments<T>(slot);
      if (in.norm != Norm::none) {
        for (auto first = lane() * channels_per_thread; first < width; first += step) {
          slot.dropped(dy, first, d);
          slot.sum_of_parts(first, x);
          slot.each(first, [&](int j, Index c) {
            auto const normalized = (x[j] - moments.mean) * moments.reciprocal, g = d[j] * in.weight.data[c];
            mean_g += g;
            mean_gx += g * normalized;
            sums[at.weight * width + c] += d[j] * normalized;
            sums[at.bias * width + c] += d[j];
          });
        }
        mean_g = in.norm == Norm::layer ? warp_sum(mean_g) / static_cast<T>(width) : T{0};
        mean_gx = warp_sum(mean_gx) / static_cast<T>(width);
      }
      auto const entry = in.assembly.entry(slot.row, slot.place);
      for (auto first = lane() * channels_per_thread; first < width; first += step) {
        slot.dropped(dy, first, d);
        if (in.norm != Norm::none) {
          slot.sum_of_parts(first, x);
          slot.each(first, [&](int j, Index c) {
            auto const normalized = (x[j] - moments.mean) * moments.reciprocal;
            d[j] = moments.reciprocal * (d[j] * in.weight.data[c] - mean_g - normalized * mean_gx);
          });
        }
        slot.each(first, [&](int j, Index c) {
          if (dx) dx[number * width + c] = d[j];
          if (in.type.data) sums[slot.place.segment * width + c] += d[j];
        });
        for (int p = in.first_part[slot.place.segment]; p < in.first_part[slot.place.segment + 1]; ++p) {
          auto const target = targets.dense[p];
          if (!target.data) continue;
          slot.each(first, [&](int j, Index c) {
            auto& to = target.data[entry * width + c];
            auto const value = product(in.scale, d[j]);
            to = target.write == Write::overwrite ? value : to + value;
          });
        }
      }
    }
  }
}

template <class T>
LOCKSTEP_CUDA_KERNEL void zero_padding(SequenceLayout<CudaSpace> layout, Index width, T* x) {
  for (auto i = grid_thread(); i < layout.slots * width; i += grid_threads())
    if (!layout.is_token(i / width)) x[i] = 0;
}

/// A thread takes a channel of one of the chunks' sums.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_chunks_of_slots(T const* sums, Index chunks, Index stride, Index rows, Index width, T* to,
                                              Write write) {
  for (auto i = grid_thread(); i < rows * width; i += grid_threads()) {
    T sum = 0;
    for (Index chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * stride + i];
    to[i] = write == Write::add ? to[i] + sum : sum;
  }
}

/// A thread takes one channel of one position, over the batch's rows in order.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void sum_positions(Assembly<CudaSpace> assembly, Counted counted, Index most_positions,
                                        Index width, Stored const* d, T* gradient, Write write) {
  auto const rows = assembly.layout.rows;
  for (auto i = grid_thread(); i < most_positions * width; i += grid_threads()) {
    auto const position = i / width, c = i % width;
    T sum = 0;
    for (Index row = 0; row < rows; ++row) {
      auto const start = assembly.layout.start(row);
      if (counted == Counted::tokens) {
        if (position < assembly.layout.tokens(row)) sum += static_cast<T>(d[(start + position) * width + c]);
      } else {
        for (int segment = 0; segment < assembly.count; ++segment)
          if (position < assembly.segments[segment].tokens(row))
            sum += static_cast<T>(d[(start + assembly.token(row, {segment, position})) * width + c]);
      }
    }
    gradient[i] = write == Write::add ? gradient[i] + sum : sum;
  }
}

/// A warp takes a chunk: the sum of its slots' dx, in order. The only chunk of a row is the row's gradient.
template <class Stored, class T>
LOCKSTEP_CUDA_KERNEL void sum_chunks(std::uint32_t const* order, std::uint32_t const* begin,
                                     std::uint32_t const* chunk_row, std::uint32_t const* first,
                                     std::int32_t const* rows, SegmentCount const* total, Index width, Stored const* dx,
                                     T* partial, T* gradient, Write write) {
  for (auto c = grid_warp(); c < total->chunks; c += grid_warps()) {
    auto const row = chunk_row[c];
    bool const whole = first[row + 1] - first[row] == 1;
    auto* const to = whole ? gradient + rows[row] * width : partial + c * width;
    auto const from = begin[c], end = begin[c + 1];
    for (auto k = lane(); k < width; k += warp) {
      T sum = 0;
      for (auto i = from; i < end; ++i) sum += static_cast<T>(dx[order[i] * width + k]);
      to[k] = whole && write == Write::add ? to[k] + sum : sum;
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
      T sum = 0;
      for (auto c = from; c < end; ++c) sum += partial[c * width + k];
      to[k] = write == Write::add ? to[k] + sum : sum;
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
