// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/embedding/embedding_gradients.hpp>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Channels that the lanes of a warp process at once.
template <class Access>
inline constexpr Index channels_per_warp = Index{warp} * Access::size;

/// A slot for one thread: its token and the sources of its channels. A thread processes the channels that share a block
/// of random bits, or, without dropout, those of one access. Finding the slot's token takes some divisions, so each
/// lane of a warp does it for one slot and shares the result.
template <class Scalar, class AccessType>
struct EmbeddingSlot {
  using Inputs = EmbeddingInputs<Scalar, CudaSpace>;
  using Access = AccessType;
  using Channels = typename Access::template Values<Scalar>;

  Inputs const& in;
  Index width, slot;
  bool is_token;
  int segment = 0;
  Index position = 0, entry = 0;  // of its row of positions, and of its segment's parts
  Index row, token;               // for dropout

  __device__ EmbeddingSlot(Inputs const& inputs, Index channels, Index at)
      : in(inputs),
        width(channels),
        slot(at),
        is_token(false),
        row(inputs.assembly.layout.row_of(at)),
        token(at - inputs.assembly.layout.start(row)) {
    is_token = token < in.assembly.layout.tokens(row);
    if (!is_token) return;
    auto const location = in.assembly.locate(row, token);
    segment = location.segment;
    position = in.position_unit == PositionUnit::tokens ? token : location.step;
    entry = in.assembly.entry(row, location);
  }
  /// Returns the slot `at`, which lane `source` of the warp found. All lanes must call it.
  [[nodiscard]] __device__ EmbeddingSlot of_lane(int source, Index at) const {
    auto other = *this;
    other.slot = at;
    other.segment = __shfl_sync(~0u, is_token ? segment : -1, source);
    other.is_token = other.segment >= 0;
    other.position = __shfl_sync(~0u, position, source);
    other.entry = __shfl_sync(~0u, entry, source);
    if (in.mask.active()) {
      other.row = __shfl_sync(~0u, row, source);
      other.token = __shfl_sync(~0u, token, source);
    }
    return other;
  }

  /// Whether a lane of a warp has more channels than it keeps, and recomputes them for each pass.
  [[nodiscard]] __device__ bool is_wide() const { return width > channels_per_warp<Access>; }

  /// Computes the token before normalization. An id outside its table gives NaN, because a check would have to wait for
  /// the device.
  __device__ void sum_of_parts(Access const& access, Channels& x) const {
    bool valid = true;
    for (auto& value : x) value = Scalar(-0.0);  // -0 is neutral: added zeros keep their signs
    auto const add = [&](Scalar const* from) {
      Channels y;
      access.load(from, y);
      for (int j = 0; j < access.size; ++j) x[j] += y[j];
    };
    for (int p = in.first_part[segment]; p < in.first_part[segment + 1]; ++p) {
      auto const& part = in.parts[p];
      Index const index = part.is_table ? static_cast<Index>(part.ids[entry]) : entry;
      if (index >= 0 && index < part.rows.extent[0])
        add(part.rows.data + index * width);
      else
        valid = false;
    }
    if (in.scale != Scalar(1))
      for (auto& value : x) value = rounded_product(value, in.scale);
    if (in.position.data) {
      if (position < in.position.extent[0])
        add(in.position.data + position * width);
      else
        valid = false;
    }
    if (in.type.data) add(in.type.data + segment * width);
    if (!valid)
      for (auto& value : x) value = std::numeric_limits<Scalar>::quiet_NaN();
  }
  /// Applies dropout to x.
  __device__ void drop(Access const& access, Channels& x) const {
    if (!in.mask.active()) return;
    MaskBits bits(in.mask, in.assembly.layout.positions.data[row]);
    auto const scale = static_cast<Scalar>(in.mask.scale());
    auto const first = token * width + access.first();
    for (int j = 0; j < access.size; ++j) x[j] = bits.keeps(first + j) ? rounded_product(x[j], scale) : Scalar{0};
  }
  /// Loads dy and applies dropout.
  template <class Stored>
  __device__ void load_gradient(Stored const* dy, Access const& access, Channels& d) const {
    access.load_as(dy + slot * width, d);
    drop(access, d);
  }
  /// Writes the gradient of the sum of parts: before scaling to dx, which may be null, and scaled to the dense parts.
  __device__ void put_gradient(Access const& access, Channels const& d, Scalar* dx,
                               EmbeddingGradients<Scalar, CudaSpace> const& targets) const {
    if (dx) access.store(d, dx + slot * width);
    for (int p = in.first_part[segment]; p < in.first_part[segment + 1]; ++p) {
      auto const target = targets.dense[p];
      if (!target.data) continue;
      Channels scaled;
      for (int j = 0; j < access.size; ++j) scaled[j] = rounded_product(in.scale, d[j]);
      access.put(scaled, target.data + entry * width, target.write);
    }
  }
};

/// Mean and reciprocal deviation of a token, computed by a whole warp. From the gradients times the weight, also the
/// means that the norm's backward pass subtracts. Leaves a lane's channels in x if they are all of its channels.
template <class Scalar, class Access>
struct TokenMoments {
  using Slot = EmbeddingSlot<Scalar, Access>;
  using Channels = typename Slot::Channels;

  Scalar mean = 0, reciprocal = 1, gradient = 0, projection = 0;

  TokenMoments() = default;
  __device__ TokenMoments(Slot const& slot, Channels& x) {
    auto const count = static_cast<Scalar>(slot.width);
    bool const centred = slot.in.norm == Norm::layer;
    if (centred) {
      Scalar sum = 0;
      for (auto first = lane() * Access::size; first < slot.width; first += channels_per_warp<Access>) {
        Access const access(first, slot.width);
        slot.sum_of_parts(access, x);
        for (int j = 0; j < access.size; ++j) sum += access.has(j) ? x[j] : Scalar{0};
      }
      mean = warp_sum(sum) / count;
    }
    Scalar squares = 0;
    for (auto first = lane() * Access::size; first < slot.width; first += channels_per_warp<Access>) {
      Access const access(first, slot.width);
      if (!centred || slot.is_wide()) slot.sum_of_parts(access, x);
      for (int j = 0; j < access.size; ++j)
        if (access.has(j)) squares += (x[j] - mean) * (x[j] - mean);
    }
    reciprocal = 1 / std::sqrt(warp_sum(squares) / count + slot.in.epsilon);
  }
  template <class Stored>
  __device__ TokenMoments(Slot const& slot, Channels& x, Stored const* dy) : TokenMoments(slot, x) {
    auto const count = static_cast<Scalar>(slot.width);
    Channels d, weight;
    for (auto first = lane() * Access::size; first < slot.width; first += channels_per_warp<Access>) {
      Access const access(first, slot.width);
      slot.load_gradient(dy, access, d);
      if (slot.is_wide()) slot.sum_of_parts(access, x);
      access.load(slot.in.weight.data, weight);
      for (int j = 0; j < access.size; ++j) {
        if (!access.has(j)) continue;
        gradient += d[j] * weight[j];
        projection += d[j] * weight[j] * normalized(x[j]);
      }
    }
    gradient = slot.in.norm == Norm::layer ? warp_sum(gradient) / count : Scalar{0};
    projection = warp_sum(projection) / count;
  }

  [[nodiscard]] __device__ Scalar normalized(Scalar x) const { return (x - mean) * reciprocal; }
  /// Returns the moments of lane `source`.
  [[nodiscard]] __device__ TokenMoments of_lane(int source) const {
    TokenMoments other;
    other.mean = __shfl_sync(~0u, mean, source);
    other.reciprocal = __shfl_sync(~0u, reciprocal, source);
    other.gradient = __shfl_sync(~0u, gradient, source);
    other.projection = __shfl_sync(~0u, projection, source);
    return other;
  }
};

/// Distribution of the slots: each warp processes `together` of them. It processes them one after the other, or several
/// at once if `lanes` lanes are enough for a slot. Both are powers of two.
struct SlotShares {
  int lanes, together;

  template <class Access>
  [[nodiscard]] static SlotShares of(Index slots, Index width, Norm norm) noexcept {
    constexpr Index busy = 8192;  // warps that a large device runs at once
    auto const groups = std::clamp<Index>(groups_of<Access>(width), 1, warp);
    auto const lanes = norm == Norm::none ? std::bit_ceil(static_cast<unsigned>(groups)) : warp;
    auto const together = std::bit_floor(static_cast<unsigned>(std::clamp<Index>(slots / busy, 1, warp)));
    return {static_cast<int>(lanes), static_cast<int>(std::max(together, warp / lanes))};
  }
  [[nodiscard]] Index threads(Index slots) const noexcept { return (slots + together - 1) / together * Index{warp}; }
};

/// Calls f(slot, first of this lane's channels in it) for each slot of this lane.
template <class Access, class Scalar, class Function>
__device__ void for_slots(EmbeddingInputs<Scalar, CudaSpace> const& in, Index width, SlotShares shares,
                          Function const& f) {
  auto const slots = in.assembly.layout.slots;
  auto const at_once = static_cast<int>(warp) / shares.lanes, own = static_cast<int>(lane()) / shares.lanes;
  auto const first = static_cast<int>(lane()) % shares.lanes * Access::size;
  for (auto begin = grid_warp() * shares.together; begin < slots; begin += grid_warps() * shares.together) {
    auto const count = static_cast<int>(min(Index{shares.together}, slots - begin));
    EmbeddingSlot<Scalar, Access> const of_this_lane(in, width, min(begin + lane(), slots - 1));
    for (int k = 0; k < count; k += at_once) {
      auto const slot = of_this_lane.of_lane(min(k + own, count - 1), begin + k + own);
      if (k + own < count) f(slot, first);
    }
  }
}

template <class Access, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void embed_slots(EmbeddingInputs<Scalar, CudaSpace> in, Index width, SlotShares shares,
                                      Stored* out) {
  for_slots<Access>(in, width, shares, [&](EmbeddingSlot<Scalar, Access> const& slot, Index begin) {
    for (auto first = begin; first < width; first += channels_per_warp<Access>) {
      Access const access(first, width);
      typename EmbeddingSlot<Scalar, Access>::Channels x = {};
      if (slot.is_token) {
        slot.sum_of_parts(access, x);
        slot.drop(access, x);
      }
      access.put(x, out + slot.slot * width);
    }
  });
}

/// Returns whether all accesses of 16 bytes to rows that begin here, and whose lengths are multiples of it, are
/// aligned.
[[nodiscard]] inline bool begins_aligned(void const* at) noexcept {
  return reinterpret_cast<std::uintptr_t>(at) % widest_access_bytes == 0;
}

/// Returns whether embed_rows computes these embeddings: without norm, with one part per segment, and with accesses of
/// type `Access` that are whole and aligned in the tables and in the result.
template <class Access, class Scalar>
[[nodiscard]] bool rows_suffice(EmbeddingInputs<Scalar, CudaSpace> const& in, Index width, void const* out) noexcept {
  bool suffice = in.norm == Norm::none && width % Access::size == 0 && begins_aligned(in.position.data) &&
                 begins_aligned(in.type.data) && begins_aligned(out) &&
                 in.position.extent[0] < std::numeric_limits<int>::max();
  for (int segment = 0; segment < in.assembly.count; ++segment)
    suffice = suffice && in.first_part[segment + 1] - in.first_part[segment] == 1;
  for (int part = 0; part < in.first_part[in.assembly.count]; ++part)
    suffice = suffice && begins_aligned(in.parts[part].rows.data);
  return suffice;
}

/// The rows whose sum is one slot. Each lane of a warp finds them for one slot.
template <class Scalar>
struct RowsOfSlot {
  static constexpr int padding = -1, invalid = -2;  // invalid: an id outside its table, or a position outside its own

  int segment = padding, position = 0;
  std::intptr_t part = 0;  // bytes from the first part's rows: nvcc loads faster from offsets to a kernel's argument

  RowsOfSlot() noexcept = default;
  template <class Access>
  __device__ explicit RowsOfSlot(EmbeddingSlot<Scalar, Access> const& slot) noexcept {
    if (!slot.is_token) return;
    auto const& in = slot.in;
    auto const& source = in.parts[in.first_part[slot.segment]];
    Index const index = source.is_table ? static_cast<Index>(source.ids[slot.entry]) : slot.entry;
    bool const valid =
        index >= 0 && index < source.rows.extent[0] && (!in.position.data || slot.position < in.position.extent[0]);
    segment = valid ? slot.segment : invalid;
    position = valid ? static_cast<int>(slot.position) : 0;
    part = reinterpret_cast<std::intptr_t>(source.rows.data + index * slot.width) -
           reinterpret_cast<std::intptr_t>(in.parts[0].rows.data);
  }
  [[nodiscard]] __device__ Scalar const* part_of(EmbeddingInputs<Scalar, CudaSpace> const& in) const noexcept {
    return reinterpret_cast<Scalar const*>(reinterpret_cast<char const*>(in.parts[0].rows.data) + part);
  }
  /// Returns the rows that lane `source` found. All lanes must call it.
  [[nodiscard]] __device__ RowsOfSlot of_lane(int source) const noexcept {
    RowsOfSlot other;
    other.segment = __shfl_sync(~0u, segment, source);
    other.position = __shfl_sync(~0u, position, source);
    other.part = __shfl_sync(~0u, part, source);
    return other;
  }
};

/// Dropout of a slot whose channels begin at a block of random bits. Each lane of a warp finds it for one slot.
/// Without dropout it is empty.
template <bool drops>
struct DroppedSlot {
  Index position = 0, first_block = 0;

  DroppedSlot() noexcept = default;
  template <class Slot>
  __device__ explicit DroppedSlot(Slot const& slot) noexcept {
    if constexpr (drops) {
      if (!slot.is_token) return;
      position = slot.in.assembly.layout.positions.data[slot.row];
      first_block = slot.token * (slot.width / DropoutAccess::size);
    }
  }
  /// Returns the dropout that lane `source` found. All lanes must call it.
  [[nodiscard]] __device__ DroppedSlot of_lane(int source) const noexcept {
    DroppedSlot other;
    if constexpr (drops) {
      other.position = __shfl_sync(~0u, position, source);
      other.first_block = __shfl_sync(~0u, first_block, source);
    }
    return other;
  }
  /// Applies dropout to the 8 channels from `channel` on. `scale` is the factor of kept elements.
  template <class Scalar, std::size_t count>
  __device__ void apply(DropoutMask const& mask, Scalar scale, Index channel, Scalar (&x)[count]) const noexcept {
    if constexpr (drops) {
      static_assert(count == DropoutAccess::size);
      auto const block = static_cast<std::uint64_t>(first_block + channel / DropoutAccess::size);
      auto const bits = Philox(mask.key)(static_cast<std::uint64_t>(position), block);
      for (int j = 0; j < static_cast<int>(count); ++j)
        x[j] = mask.keeps(bits, static_cast<unsigned>(j)) ? rounded_product(x[j], scale) : Scalar{0};
    }
  }
};

/// Computes embeddings if rows_suffice. A lane loads the channels of several slots before it waits for any of them.
/// `scale` is the factor of elements that dropout keeps.
template <class Access, bool drops, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 3)
    embed_rows(EmbeddingInputs<Scalar, CudaSpace> in, Index width, SlotShares shares, Scalar scale, Stored* out) {
  using Channels = typename Access::template Values<Scalar>;
  constexpr int batch = 16 / Access::size;
  auto const slots = in.assembly.layout.slots;
  auto const mask = drops ? in.mask.resolved() : DropoutMask{};
  auto const at_once = static_cast<int>(warp) / shares.lanes, own = static_cast<int>(lane()) / shares.lanes;
  auto const first = static_cast<int>(lane()) % shares.lanes * Access::size;
  for (auto begin = grid_warp() * shares.together; begin < slots; begin += grid_warps() * shares.together) {
    auto const count = static_cast<int>(min(Index{shares.together}, slots - begin));
    EmbeddingSlot<Scalar, Access> const slot_of_this_lane(in, width, min(begin + lane(), slots - 1));
    RowsOfSlot<Scalar> const of_this_lane(slot_of_this_lane);
    DroppedSlot<drops> const dropped_of_this_lane(slot_of_this_lane);
    for (int k = own; k - own < count; k += batch * at_once) {
      RowsOfSlot<Scalar> rows[std::size_t{batch}];
      DroppedSlot<drops> dropped[std::size_t{batch}];
      for_constants<batch>([&](auto i) {
        auto const source = min(k + i * at_once, count - 1);
        rows[i] = of_this_lane.of_lane(source);
        dropped[i] = dropped_of_this_lane.of_lane(source);
      });
      auto* const to = out + (begin + k) * width;
      for (auto channel = first; channel < width; channel += static_cast<int>(channels_per_warp<Access>)) {
        Access const access(channel, width);
        Channels x[std::size_t{batch}] = {}, of_position[std::size_t{batch}] = {}, of_type;
        for_constants<batch>([&](auto i) {
          if (rows[i].segment < 0) return;
          access.load_whole(rows[i].part_of(in), x[i]);
          if (in.position.data) access.load_whole(in.position.data + rows[i].position * width, of_position[i]);
        });
        for_constants<batch>([&](auto i) {
          if (rows[i].segment < 0) {
            auto const nan = std::numeric_limits<Scalar>::quiet_NaN();
            for (auto& value : x[i]) value = rows[i].segment == RowsOfSlot<Scalar>::padding ? Scalar(0) : nan;
          } else {
            if (in.scale != Scalar(1))
              for (auto& value : x[i]) value = rounded_product(value, in.scale);
            if (in.position.data)
              for (int j = 0; j < Access::size; ++j) x[i][j] += of_position[i][j];
            if (in.type.data) {
              access.load_whole(in.type.data + rows[i].segment * width, of_type);
              for (int j = 0; j < Access::size; ++j) x[i][j] += of_type[j];
            }
          }
          dropped[i].apply(mask, scale, Index{channel}, x[i]);
          if (k + i * at_once < count) access.put_whole(x[i], to + Index{i * at_once} * width);
        });
      }
    }
  }
}

/// Computes embeddings with a norm, with all lanes of a warp per slot.
template <class Access, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void embed_normalized_slots(EmbeddingInputs<Scalar, CudaSpace> in, Index width, SlotShares shares,
                                                 Stored* out) {
  for_slots<Access>(in, width, shares, [&](EmbeddingSlot<Scalar, Access> const& slot, Index begin) {
    typename EmbeddingSlot<Scalar, Access>::Channels x = {}, factors;
    auto const moments = slot.is_token ? TokenMoments<Scalar, Access>(slot, x) : TokenMoments<Scalar, Access>();
    for (auto first = begin; first < width; first += channels_per_warp<Access>) {
      Access const access(first, width);
      if (slot.is_token) {
        if (slot.is_wide()) slot.sum_of_parts(access, x);
        access.load(in.weight.data, factors);
        for (int j = 0; j < access.size; ++j) x[j] = factors[j] * moments.normalized(x[j]);
        if (in.bias.data) {
          access.load(in.bias.data, factors);
          for (int j = 0; j < access.size; ++j) x[j] += factors[j];
        }
        slot.drop(access, x);
      }
      access.put(x, out + slot.slot * width);
    }
  });
}

/// Computes gradients of the channels, for dx and dense parts.
template <class Access, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void embed_slots_backward(EmbeddingInputs<Scalar, CudaSpace> in,
                                               EmbeddingGradients<Scalar, CudaSpace> targets, Index width,
                                               SlotShares shares, Stored const* dy, Scalar* dx) {
  for_slots<Access>(in, width, shares, [&](EmbeddingSlot<Scalar, Access> const& slot, Index begin) {
    if (!slot.is_token) return;
    for (auto first = begin; first < width; first += channels_per_warp<Access>) {
      Access const access(first, width);
      typename EmbeddingSlot<Scalar, Access>::Channels d;
      slot.load_gradient(dy, access, d);
      slot.put_gradient(access, d, dx, targets);
    }
  });
}

/// Stores 32 bytes of each lane at to[channel], if `valid`, so that two adjacent lanes write 32 contiguous bytes at
/// once: a device writes half of such a sector as slowly as all of it. All lanes must call it. The lanes of a pair must
/// have adjacent channels, and both or none of them must be `valid`.
template <class Scalar, std::size_t count>
__device__ void put_by_pairs(Scalar const (&x)[count], Scalar* to, Index channel, bool valid) noexcept {
  uint4 halves[2];
  static_assert(sizeof halves == sizeof x);
  std::memcpy(static_cast<void*>(halves), x, sizeof x);
  bool const odd = lane() % 2 != 0;
  uint4 const send = odd ? halves[0] : halves[1];
  uint4 const received{__shfl_xor_sync(~0u, send.x, 1), __shfl_xor_sync(~0u, send.y, 1),
                       __shfl_xor_sync(~0u, send.z, 1), __shfl_xor_sync(~0u, send.w, 1)};
  if (!valid) return;
  auto* const at = reinterpret_cast<uint4*>(to + (odd ? channel - Index{count} : channel)) + odd;
  __stwb(at, odd ? received : halves[0]);
  __stwb(at + 2, odd ? halves[1] : received);
}

/// Computes gradients of the channels for dx alone, if rows are whole and aligned accesses of type `Access`. A lane
/// loads the channels of several slots before it waits for any of them. `scale` is the factor of elements that dropout
/// keeps.
template <class Access, bool drops, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 3)
    embed_rows_backward(EmbeddingInputs<Scalar, CudaSpace> in, Index width, SlotShares shares, Scalar scale,
                        Stored const* dy, Scalar* dx) {
  constexpr int batch = sizeof(Stored) * Access::size > widest_access_bytes ? 2 : 4;
  constexpr bool has_halves = sizeof(Scalar) * Access::size == 2 * widest_access_bytes;
  bool const paired = has_halves && width % (2 * Access::size) == 0;
  auto const slots = in.assembly.layout.slots;
  auto const mask = drops ? in.mask.resolved() : DropoutMask{};
  auto const at_once = static_cast<int>(warp) / shares.lanes, own = static_cast<int>(lane()) / shares.lanes;
  auto const first = static_cast<int>(lane()) % shares.lanes * Access::size;
  for (auto begin = grid_warp() * shares.together; begin < slots; begin += grid_warps() * shares.together) {
    auto const count = static_cast<int>(min(Index{shares.together}, slots - begin));
    EmbeddingSlot<Scalar, Access> const slot_of_this_lane(in, width, min(begin + lane(), slots - 1));
    DroppedSlot<drops> const dropped_of_this_lane(slot_of_this_lane);
    for (int k = own; k - own < count; k += batch * at_once) {
      auto const lane_of = [&](int i) { return min(k + i * at_once, count - 1); };
      bool token[std::size_t{batch}];
      for_constants<batch>([&](auto i) {
        token[i] = __shfl_sync(~0u, int{slot_of_this_lane.is_token}, lane_of(i)) != 0 && k + i * at_once < count;
      });
      auto const slot = begin + k;
      for (auto tile = 0; tile < width; tile += static_cast<int>(channels_per_warp<Access>)) {
        Access const access(tile + first, width);
        bool const inside = access.first() < width;
        typename Access::template Values<Stored> stored[std::size_t{batch}] = {};
        for_constants<batch>([&](auto i) {
          if (token[i] && inside) access.load_whole(dy + (slot + i * at_once) * width, stored[i]);
        });
        for_constants<batch>([&](auto i) {
          typename Access::template Values<Scalar> d;
          for (int j = 0; j < Access::size; ++j) d[j] = static_cast<Scalar>(stored[i][j]);
          dropped_of_this_lane.of_lane(lane_of(i)).apply(mask, scale, access.first(), d);
          auto* const to = dx + (slot + i * at_once) * width;
          if constexpr (has_halves)
            if (paired) return put_by_pairs(d, to, access.first(), token[i] && inside);
          if (token[i] && inside) access.put_whole(d, to);
        });
      }
    }
  }
}

/// Returns the slots of one warp in the backward pass of a norm: at most as many as it has lanes; depends only on the
/// number of slots.
[[nodiscard]] constexpr Index slots_per_warp(Index slots) noexcept { return std::clamp<Index>(slots / 2048, 4, warp); }
[[nodiscard]] constexpr Index norm_chunks(Index slots) noexcept {
  return (slots + slots_per_warp(slots) - 1) / slots_per_warp(slots);
}

/// Computes the gradients with a norm. One warp processes a chunk of slots. It writes its sums for the weight, and
/// after those of all chunks its sums for the bias.
template <class Access, class Stored, class Scalar>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 2)  // blocks whose registers fit a multiprocessor
    embed_normalized_slots_backward(EmbeddingInputs<Scalar, CudaSpace> in,
                                    EmbeddingGradients<Scalar, CudaSpace> targets, Index width, Stored const* dy,
                                    Scalar* dx, Scalar* sums) {
  auto const slots = in.assembly.layout.slots, chunks = norm_chunks(slots);
  for (auto chunk = grid_warp(); chunk < chunks; chunk += grid_warps()) {
    auto const begin = chunk * slots_per_warp(slots);
    auto const count = static_cast<int>(min(slots - begin, slots_per_warp(slots)));
    EmbeddingSlot<Scalar, Access> const slot_of_this_lane(in, width, min(begin + lane(), slots - 1));
    TokenMoments<Scalar, Access> of_this_lane;
    for (int k = 0; k < count; ++k) {
      auto const slot = slot_of_this_lane.of_lane(k, begin + k);
      typename EmbeddingSlot<Scalar, Access>::Channels x = {};
      auto const moments = slot.is_token ? TokenMoments<Scalar, Access>(slot, x, dy) : TokenMoments<Scalar, Access>();
      if (k == static_cast<int>(lane())) of_this_lane = moments;
    }
    for (Index group = 0; group < width; group += channels_per_warp<Access>) {
      Access const access(group + lane() * Access::size, width);
      typename EmbeddingSlot<Scalar, Access>::Channels x = {}, d, weight, of_weight = {}, of_bias = {};
      access.load(in.weight.data, weight);
      for (int k = 0; k < count; ++k) {
        auto const moments = of_this_lane.of_lane(k);
        auto const slot = slot_of_this_lane.of_lane(k, begin + k);
        if (!slot.is_token) continue;
        slot.load_gradient(dy, access, d);
        slot.sum_of_parts(access, x);
        for (int j = 0; j < access.size; ++j) {
          auto const normalized = moments.normalized(x[j]);
          of_weight[j] += d[j] * normalized;
          of_bias[j] += d[j];
          d[j] = moments.reciprocal * (d[j] * weight[j] - moments.gradient - normalized * moments.projection);
        }
        slot.put_gradient(access, d, dx, targets);
      }
      access.store(of_weight, sums + chunk * width);
      access.store(of_bias, sums + (chunks + chunk) * width);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
