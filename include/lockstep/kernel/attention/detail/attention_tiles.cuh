// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Arguments of attention kernels, with the shapes of Attention<HostSpace>::Inputs.
template <class Scalar>
struct AttentionArguments {
  Scalar const *query, *key, *value, *bias;
  SequenceLayout<CudaSpace> queries, keys;
  Index heads, query_heads_per_key_head, width, key_width, head_width, distances;
  Accumulate<Scalar> scale;
  bool causal;
  DropoutMask mask;
  Accumulate<Scalar> kept_scale;  // dropout's factor of kept elements
};

enum class Side {
  queries,  ///< a block owns queries, and computes their results, or the gradients of queries and bias
  keys,     ///< a block owns keys, and computes the gradients of keys and values
};

/// Shape of a block's work: 8 warps with `rows` rows each of the block's own side. The other side is processed `tile`
/// rows at a time, one lane each. When values are added, a lane processes `per_lane` channels of a head.
template <class Scalar, int per_lane_>
struct AttentionShape {
  using Sum = Accumulate<Scalar>;
  static constexpr int threads = threads_per_block, per_lane = per_lane_, channels = 32 * per_lane, tile = 32;
  static constexpr int rows = sizeof(Sum) == 8 ? 2 : 4, own = rows * static_cast<int>(warps_per_block);
  static constexpr int scores_stride = own + 16 / static_cast<int>(sizeof(Sum));  // free of bank conflicts, and aligned

  template <int n>
  static constexpr auto extent = static_cast<std::size_t>(n);
  using Own = Sum[extent<threads / tile>][extent<channels>][extent<rows>];
  using Tile = Sum[extent<tile>][extent<channels + 1>];
  using Scores = Sum[extent<tile>][extent<scores_stride>];
  using Sums = Sum[extent<rows>][extent<per_lane>];

  /// Whether the backward pass has its two tiles in dynamic shared memory, because static shared memory is too small.
  static constexpr bool tiles_are_dynamic =
      2 * (sizeof(Own) + sizeof(Scores) + sizeof(Tile)) > most_static_shared_bytes;
  static constexpr int dynamic_bytes = tiles_are_dynamic ? int{2 * sizeof(Tile)} : 0;
};

inline namespace LOCKSTEP_CUDA_ABI {

/// One head of one sequence, as used by a block.
template <class Scalar>
struct AttentionHead {
  Index index, row, number;
  Index queries, keys;  // tokens
  DropoutMask mask;

  __device__ AttentionHead(AttentionArguments<Scalar> const& in, Index head) noexcept
      : index(head),
        row(head / in.heads),
        number(head % in.heads),
        queries(in.queries.tokens(row)),
        keys(in.keys.tokens(row)),
        mask(in.mask.resolved()) {}

  /// Returns the offset of the head's first element in the queries (first function) or in the keys (second).
  [[nodiscard]] __device__ Index query_start(AttentionArguments<Scalar> const& in) const {
    return in.queries.start(row) * in.width + number * in.head_width;
  }
  [[nodiscard]] __device__ Index key_start(AttentionArguments<Scalar> const& in) const {
    return in.keys.start(row) * in.key_width + number / in.query_heads_per_key_head * in.head_width;
  }
  [[nodiscard]] __device__ bool attends(AttentionArguments<Scalar> const& in, Index query, Index key) const {
    return query < queries && key < keys && (!in.causal || key <= query);
  }
  [[nodiscard]] __device__ Accumulate<Scalar> bias(AttentionArguments<Scalar> const& in, Index query, Index key) const {
    if (!in.bias) return 0;
    return static_cast<Accumulate<Scalar>>(in.bias[number * in.distances + key - query + in.queries.length - 1]);
  }
  /// Returns whether dropout keeps the probabilities of a query: bit k is for key k of the aligned group of 8 that
  /// contains `key`. Such a group shares a block of random bits.
  [[nodiscard]] __device__ unsigned kept(AttentionArguments<Scalar> const& in, Index query, Index key) const {
    if (!mask.active()) return ~0u;
    auto const element = static_cast<std::uint64_t>((number * queries + query) * ((keys + 7) / 8 * 8) + key);
    auto const words = Philox(mask.key)(static_cast<std::uint64_t>(in.queries.positions.data[row]), element / 8);
    unsigned bits = 0;
    for (unsigned k = 0; k < 8; ++k) bits |= static_cast<unsigned>(mask.keeps(words, k)) << k;
    return bits;
  }
};

/// Sets kept[a] to whether dropout keeps the probability of query + a and the lane's key. Lanes whose keys share a
/// block of random bits each evaluate it for one query and exchange the results. All lanes must call it.
template <int rows, class Scalar>
__device__ void keep_of_queries(AttentionArguments<Scalar> const& in, AttentionHead<Scalar> const& head, Index query,
                                Index key, bool (&kept)[static_cast<std::size_t>(rows)]) {
  auto const offset = static_cast<int>(lane() % 8), first = static_cast<int>(lane()) - offset;
  auto const mine = head.kept(in, query + offset % rows, key);
  for (int a = 0; a < rows; ++a) kept[a] = (__shfl_sync(~0u, mine, first + a) >> offset & 1) != 0;
}

/// Loads rows of one head, `stride` apart, into shared memory, for the block's own side. Missing rows and channels are
/// zero.
template <class Shape, class Scalar>
__device__ void load_own(AttentionArguments<Scalar> const& in, Scalar const* from, Index stride, Index count,
                         typename Shape::Own& to) {
  for (auto i = static_cast<int>(threadIdx.x); i < Shape::own * Shape::channels; i += Shape::threads) {
    auto const row = i / Shape::channels, c = i % Shape::channels;
    bool const valid = row < count && c < in.head_width;
    to[row / Shape::rows][c][row % Shape::rows] =
        valid ? static_cast<typename Shape::Sum>(from[row * stride + c]) : typename Shape::Sum{0};
  }
}
/// Loads rows like load_own, for the other side.
template <class Shape, class Scalar>
__device__ void load_tile(AttentionArguments<Scalar> const& in, Scalar const* from, Index stride, Index count,
                          typename Shape::Tile& to) {
  for (auto i = static_cast<int>(threadIdx.x); i < Shape::tile * Shape::channels; i += Shape::threads) {
    auto const row = i / Shape::channels, c = i % Shape::channels;
    bool const valid = row < count && c < in.head_width;
    to[row][c] = valid ? static_cast<typename Shape::Sum>(from[row * stride + c]) : typename Shape::Sum{0};
  }
}

/// Computes products[a] = the warp's own row a . the lane's row of the tile.
template <class Shape>
__device__ void multiply_rows(typename Shape::Own const& own, typename Shape::Tile const& tile, Index head_width,
                              typename Shape::Sum (&products)[Shape::rows]) {
  auto const& mine = own[threadIdx.x / warp];
  auto const& other = tile[threadIdx.x % warp];
  for (auto& product : products) product = 0;
  for (Index c = 0; c < head_width; ++c)
    for (int a = 0; a < Shape::rows; ++a) products[a] += mine[c][a] * other[c];
}

/// Computes sums[a][i] += the sum over the rows of the tile, in order, of scores[row][own row a] * the lane's channels.
template <class Shape>
__device__ void add_rows(typename Shape::Scores const& scores, typename Shape::Tile const& tile, Index count,
                         typename Shape::Sums& sums) {
  auto const first = threadIdx.x / warp * Shape::rows, here = threadIdx.x % warp;
  for (Index row = 0; row < count; ++row)
    for (int a = 0; a < Shape::rows; ++a)
      for (int i = 0; i < Shape::per_lane; ++i)
        sums[a][i] += scores[row][first + static_cast<unsigned>(a)] * tile[row][here + warp * static_cast<unsigned>(i)];
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
