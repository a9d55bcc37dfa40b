// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/detail/attention_tiles.cuh>
#include <lockstep/kernel/detail/warp.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes attention for a tile of a head's queries, in one pass over the keys. Whenever a score exceeds the largest
/// so far, rescales the sums of the exponentials and of the values.
template <class Scalar, int per_lane>
LOCKSTEP_CUDA_KERNEL void attend(AttentionArguments<Scalar> in, Scalar* out, Accumulate<Scalar>* log_sums) {
  using Shape = AttentionShape<Scalar, per_lane>;
  using Sum = typename Shape::Sum;
  constexpr auto nothing = -std::numeric_limits<Sum>::infinity();
  __shared__ __align__(16) typename Shape::Own own;
  __shared__ typename Shape::Tile keys, values;
  __shared__ __align__(16) typename Shape::Scores scores;

  auto const tiles = (in.queries.length + Shape::own - 1) / Shape::own;
  AttentionHead<Scalar> const head(in, Index{blockIdx.x} / tiles);
  auto const first = Index{blockIdx.x} % tiles * Shape::own;
  auto const slots = in.queries.end(head.row) - in.queries.start(head.row);
  if (first >= slots) return;
  auto const query = head.query_start(in), key = head.key_start(in);
  load_own<Shape>(in, in.query + query + first * in.width, in.width, head.queries - first, own);

  auto const own_row = static_cast<Index>(threadIdx.x / warp * Shape::rows);  // of this warp
  Sum maximum[Shape::rows], total[Shape::rows] = {};
  typename Shape::Sums sums = {};
  for (auto& m : maximum) m = nothing;
  auto const last_query = min(first + Shape::own, head.queries);
  auto const end = in.causal ? min(head.keys, last_query) : head.keys;
  for (Index at = 0; at < end; at += Shape::tile) {
    auto const count = min(Index{Shape::tile}, end - at), j = at + lane();
    __syncthreads();  // wait until the last tile was read
    load_tile<Shape>(in, in.key + key + at * in.key_width, in.key_width, count, keys);
    load_tile<Shape>(in, in.value + key + at * in.key_width, in.key_width, count, values);
    __syncthreads();
    Sum p[Shape::rows];
    bool kept[Shape::rows];
    multiply_rows<Shape>(own, keys, in.head_width, p);
    keep_of_queries<Shape::rows>(in, head, first + own_row, j, kept);
    for (int a = 0; a < Shape::rows; ++a) {
      auto const i = first + own_row + a;
      bool const visible = j < end && head.attends(in, i, j);
      p[a] = visible ? in.scale * p[a] + head.bias(in, i, j) : nothing;
      auto const larger = max(maximum[a], warp_largest(p[a]));
      auto const correction = larger == nothing ? Sum{1} : std::exp(maximum[a] - larger);
      p[a] = visible && p[a] != nothing ? std::exp(p[a] - larger) : Sum{0};
      total[a] = total[a] * correction + warp_sum(p[a]);
      maximum[a] = larger;
      for (auto& sum : sums[a]) sum *= correction;
      scores[lane()][own_row + a] = visible && kept[a] ? p[a] * in.kept_scale : Sum{0};
    }
    __syncwarp();
    add_rows<Shape>(scores, values, count, sums);
  }
  for (int a = 0; a < Shape::rows; ++a) {
    auto const i = first + own_row + a;
    if (i >= slots) continue;
    Sum const by = total[a] > 0 || total[a] != total[a] ? 1 / total[a] : Sum{0};
    for (int k = 0; k < per_lane; ++k) {
      auto const c = lane() + Index{warp} * k;
      if (c < in.head_width) out[query + i * in.width + c] = static_cast<Scalar>(sums[a][k] * by);
    }
    if (lane() == 0 && i < head.queries) log_sums[head.index * in.queries.length + i] = maximum[a] + std::log(total[a]);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
