// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/detail/attention_inputs.hpp>
#include <lockstep/kernel/attention/detail/attention_tiles.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes means[head, i] = out[i] . dout[i]. One warp processes one query.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void attention_means(AttentionArguments<Scalar> in, Scalar const* out, Scalar const* dout,
                                          Accumulate<Scalar>* means) {
  using Sum = Accumulate<Scalar>;
  for (auto at = grid_warp(); at < in.queries.rows * in.heads * in.queries.length; at += grid_warps()) {
    AttentionHead<Scalar> const head(in, at / in.queries.length);
    auto const i = at % in.queries.length;
    if (i >= head.queries) continue;
    auto const from = head.query_start(in) + i * in.width;
    Sum sum = 0;
    for (auto c = lane(); c < in.head_width; c += warp)
      sum += static_cast<Sum>(out[from + c]) * static_cast<Sum>(dout[from + c]);
    sum = warp_sum(sum);
    if (lane() == 0) means[at] = sum;
  }
}

/// Writes the warp's rows of one gradient, including padding.
template <class Shape, class Scalar>
__device__ void write_gradient(AttentionArguments<Scalar> const& in, AttentionTarget<Scalar> target, Index head,
                               Index stride, Index first, Index tokens, Index slots, typename Shape::Sum scale,
                               typename Shape::Sums const& sums) {
  for (int a = 0; a < Shape::rows; ++a)
    for (int k = 0; k < Shape::per_lane; ++k) {
      auto const row = first + a, c = lane() + Index{warp} * k;
      if (row >= slots || c >= in.head_width) continue;
      auto& to = target.data[head + row * stride + c];
      auto const here = row < tokens ? scale * sums[a][k] : typename Shape::Sum{0};
      if (target.write == Write::overwrite)
        to = static_cast<Scalar>(here);
      else if (row < tokens)
        to = static_cast<Scalar>(static_cast<typename Shape::Sum>(to) + here);
    }
}

/// Computes the gradients of a tile of one side of a head. The block passes over the other side, so each gradient has
/// one writer. Queries: `first_target` is the queries' gradient. The block's part of the bias's gradient goes to
/// by_distance [blocks, distances], which the caller sets to zero. Keys: the targets are the gradients of keys and
/// values. The block passes over all heads of queries that share the keys, in order.
template <class Scalar, int per_lane, Side side>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 2)  // blocks whose registers fit a multiprocessor
    differentiate_attention(AttentionArguments<Scalar> in, Scalar const* dout, Accumulate<Scalar> const* log_sums,
                            Accumulate<Scalar> const* means, AttentionTarget<Scalar> first_target,
                            AttentionTarget<Scalar> second_target, Accumulate<Scalar>* by_distance) {
  using Shape = AttentionShape<Scalar, per_lane>;
  using Sum = typename Shape::Sum;
  constexpr bool own_keys = side == Side::keys;
  __shared__ __align__(16) typename Shape::Own own[2];
  __shared__ typename Shape::Tile fixed[Shape::tiles_are_dynamic ? 1 : 2];
  __shared__ __align__(16) typename Shape::Scores scores[own_keys ? 2 : 1];
  typename Shape::Tile* tile = fixed;
  if constexpr (Shape::tiles_are_dynamic) tile = dynamic_shared<typename Shape::Tile>();

  auto const& own_layout = own_keys ? in.keys : in.queries;
  auto const own_stride = own_keys ? in.key_width : in.width, other_stride = own_keys ? in.width : in.key_width;
  auto const tiles = (own_layout.length + Shape::own - 1) / Shape::own;
  auto const shared_heads = own_keys ? in.query_heads_per_key_head : Index{1},
             first_head = Index{blockIdx.x} / tiles * shared_heads;
  auto const first = Index{blockIdx.x} % tiles * Shape::own;
  AttentionHead<Scalar> const leading(in, first_head);
  auto const slots = own_layout.end(leading.row) - own_layout.start(leading.row);
  if (first >= slots) return;
  auto const tokens = own_keys ? leading.keys : leading.queries, others = own_keys ? leading.queries : leading.keys;
  auto const own_start = own_keys ? leading.key_start(in) : leading.query_start(in);
  load_own<Shape>(in, (own_keys ? in.key : in.query) + own_start + first * own_stride, own_stride, tokens - first,
                  own[0]);
  load_own<Shape>(in, (own_keys ? in.value : dout) + own_start + first * own_stride, own_stride, tokens - first,
                  own[1]);

  auto const own_row = static_cast<Index>(threadIdx.x / warp * Shape::rows);
  typename Shape::Sums sums[2] = {};
  auto const begin = own_keys && in.causal ? first : 0;
  auto const end = !own_keys && in.causal ? min(others, first + Shape::own) : others;
  for (Index sharer = 0; sharer < shared_heads; ++sharer) {
    AttentionHead<Scalar> const head(in, first_head + sharer);
    auto const other_start = own_keys ? head.query_start(in) : head.key_start(in);
    auto const* const logs = log_sums + head.index * in.queries.length;
    auto const* const mean = means + head.index * in.queries.length;
    for (Index at = begin; at < end; at += Shape::tile) {
      auto const count = min(Index{Shape::tile}, end - at), other = at + lane();
      __syncthreads();  // wait until the last tile was read
      load_tile<Shape>(in, (own_keys ? in.query : in.key) + other_start + at * other_stride, other_stride, count,
                       tile[0]);
      load_tile<Shape>(in, (own_keys ? dout : in.value) + other_start + at * other_stride, other_stride, count,
                       tile[1]);
      __syncthreads();
      Sum p[Shape::rows], dp[Shape::rows];
      bool kept[Shape::rows];
      if constexpr (own_keys) {
        auto const key = first + own_row;
        auto const bits = head.kept(in, other, key) >> key % 8;
        for (int a = 0; a < Shape::rows; ++a) kept[a] = (bits >> a & 1) != 0;
      } else {
        keep_of_queries<Shape::rows>(in, head, first + own_row, other, kept);
      }
      multiply_rows<Shape>(own[0], tile[0], in.head_width, p);
      multiply_rows<Shape>(own[1], tile[1], in.head_width, dp);
      for (int a = 0; a < Shape::rows; ++a) {
        auto const mine = first + own_row + a, i = own_keys ? other : mine, j = own_keys ? mine : other;
        Sum ds = 0, dropped = 0;
        if (other < end && head.attends(in, i, j)) {
          auto const probability = std::exp(in.scale * p[a] + head.bias(in, i, j) - logs[i]);
          auto const factor = kept[a] ? in.kept_scale : Sum{0};
          ds = probability * (dp[a] * factor - mean[i]);
          dropped = probability * factor;
        }
        scores[0][lane()][own_row + a] = ds;
        if constexpr (own_keys) scores[1][lane()][own_row + a] = dropped;
      }
      __syncwarp();
      add_rows<Shape>(scores[0], tile[0], count, sums[0]);
      if constexpr (own_keys) {
        add_rows<Shape>(scores[1], tile[1], count, sums[1]);
      } else if (by_distance) {  // one thread per diagonal
        __syncthreads();
        auto const diagonal = static_cast<Index>(threadIdx.x) - (Shape::own - 1);  // key - query, within the tile
        if (diagonal < Shape::tile) {
          Sum sum = 0;
          for (Index i = max(Index{0}, -diagonal); i < Shape::own && i + diagonal < count; ++i)
            sum += scores[0][i + diagonal][i];
          auto const distance = at - first + diagonal + in.queries.length - 1;
          if (distance >= 0 && distance < in.distances) {
            by_distance[Index{blockIdx.x} * in.distances + distance] += sum;
          }
        }
      }
    }
  }
  write_gradient<Shape>(in, first_target, own_start, own_stride, first + own_row, tokens, slots, in.scale, sums[0]);
  if constexpr (own_keys)
    write_gradient<Shape>(in, second_target, own_start, own_stride, first + own_row, tokens, slots, Sum{1}, sums[1]);
}

/// Sums the bias's gradient. One block sums 32 distances of a head. Each of 8 threads per distance sums every eighth
/// tile of all rows, then their sums are added in order.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_distances(AttentionArguments<Scalar> in, Index tiles,
                                        Accumulate<Scalar> const* by_distance, AttentionTarget<Scalar> target) {
  using Sum = Accumulate<Scalar>;
  auto const groups = (in.distances + warp - 1) / warp;
  auto const number = Index{blockIdx.x} / groups, distance = Index{blockIdx.x} % groups * warp + lane();
  Sum sum = 0;
  if (distance < in.distances)
    for (auto i = Index{threadIdx.x} / warp; i < in.queries.rows * tiles; i += warps_per_block) {
      auto const block = (i / tiles * in.heads + number) * tiles + i % tiles;
      sum += by_distance[block * in.distances + distance];
    }
  sum = sum_of_column(sum);
  if (threadIdx.x >= warp || distance >= in.distances) return;
  auto& to = target.data[number * in.distances + distance];
  to = static_cast<Scalar>(target.write == Write::add ? static_cast<Sum>(to) + sum : sum);
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
