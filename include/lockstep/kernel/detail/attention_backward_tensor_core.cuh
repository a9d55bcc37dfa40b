// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <type_traits>

#include <lockstep/kernel/detail/attention_fragments.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes means[row] = out[row] . dout[row] for the warp's own rows, in shared memory and, for the head's queries, in
/// `all`. dout is in shared memory.
template <class Shape>
__device__ void compute_means(typename Shape::T const* out, Index stride, Index tokens, int head_width,
                              typename Shape::Row const* dout, float* means, float* all) noexcept {
  using T = typename Shape::T;
  auto const lane = static_cast<int>(threadIdx.x) % 32;
  for (int n = 0; n < Shape::warp_rows; n += 4) {  // eight lanes per row
    auto const row = warp_row<Shape>() + n + lane / 8;
    float sum = 0;
    if (row < tokens)
      for (auto c = lane % 8 * 8; c < head_width; c += 64)
        for (int k = 0; k < 8; ++k)
          if (c + k < head_width)
            sum += static_cast<float>(out[row * stride + c + k]) * element<T>(ElementPair{dout[row][c + k]}, 0);
    for (unsigned distance = 4; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane % 8 != 0) continue;
    means[row] = sum;
    if (row < tokens) all[row] = sum;
  }
  __syncwarp();
}

/// Returns the logarithm to base 2 of a query's sum of exponentials: any number if the query has no key.
__device__ inline float log2_sum(float log_sum) noexcept {
  return log_sum == -std::numeric_limits<float>::infinity() ? 0.0f : log_sum * log2_of_e;
}

/// Adds the bias's gradient by distance for 16 keys from `key` on: the diagonals of ds. The whole block must call it.
template <class Shape, class T>
__device__ void add_by_distance(AttentionArguments<T> const& in, Index query, Index key,
                                typename Shape::Products const& ds, float (*diagonals)[17], float* by_distance) {
  LOCKSTEP_UNROLL
  for (int m = 0; m < Shape::row_tiles; ++m)
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 4; ++i)
        diagonals[warp_row<Shape>() + 16 * m + i / 2 * 8 + fragment_row()][8 * n + fragment_column() + i % 2] =
            ds[m][n][i];
  __syncthreads();
  for (auto d = static_cast<int>(threadIdx.x); d < Shape::own + 15; d += Shape::threads) {
    auto const diagonal = d - (Shape::own - 1);  // key - query, within the tile
    float sum = 0;
    for (int i = max(0, -diagonal); i < Shape::own && i + diagonal < 16; ++i) sum += diagonals[i][i + diagonal];
    auto const distance = key - query + diagonal + in.queries.length - 1;
    if (distance >= 0 && distance < in.distances) by_distance[Index{blockIdx.x} * in.distances + distance] += sum;
  }
  __syncthreads();
}

/// Computes the gradient of a block's queries in one pass over the keys, with products on tensor cores. Also writes
/// means [heads of all rows, queries.length], which the keys' kernel reads. The bias's gradient goes to by_distance
/// [blocks, distances], which the caller sets to zero; null: skipped.
template <class T, int channels, int row_tiles>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(128, channels > 64 ? 2 : 3)
    differentiate_queries(AttentionArguments<T> in, bool wide, T const* out, T const* dout, float const* log_sums,
                          float* means, AttentionTarget<T> target, float* by_distance) {
  using Shape = FragmentShape<T, channels, row_tiles>;
  constexpr int tile = Shape::tile;
  constexpr bool apart = Shape::own <= tile;  // the own rows and the first tile fit together
  __shared__ __align__(16) typename Shape::Memory memory;
  __shared__ float own_means[Shape::template extent<Shape::own>];
  __shared__ float diagonals[Shape::template extent<Shape::own>][17];

  auto const blocks = (in.queries.length + Shape::own - 1) / Shape::own;
  AttentionHead<T> const head(in, Index{blockIdx.x} / blocks);
  auto const first = (blocks - 1 - Index{blockIdx.x} % blocks) * Shape::own;
  auto const slots = in.queries.end(head.row) - in.queries.start(head.row);
  if (first >= slots) return;
  auto const head_width = static_cast<int>(in.head_width);
  auto const tokens = head.queries - first;
  auto const query = head.query_start(in) + first * in.width, key = head.key_start(in);
  auto const end = in.causal ? min(head.keys, min(first + Shape::own, head.queries)) : head.keys;
  auto const copy_tile = [&](Index at, typename Shape::Row* to) {
    copy_rows<Shape, tile>(in.key + key + at * in.key_width, in.key_width, end - at, head_width, wide, to);
    copy_rows<Shape, tile>(in.value + key + at * in.key_width, in.key_width, end - at, head_width, wide, to + tile);
  };
  auto* const own = apart ? memory + Shape::buffer_rows : memory;
  copy_rows<Shape, Shape::own>(in.query + query, in.width, tokens, head_width, wide, own);
  copy_rows<Shape, Shape::own>(dout + query, in.width, tokens, head_width, wide, own + Shape::own);
  if (apart) copy_tile(0, memory);
  wait_for_copies();
  __syncthreads();
  auto const stripe = head.index * in.queries.length;
  compute_means<Shape>(out + query, in.width, tokens, head_width, own + Shape::own, own_means, means + stripe + first);
  typename Shape::Left queries, gradients;
  load_left<Shape>(own, queries);
  load_left<Shape>(own + Shape::own, gradients);
  if (!apart) {
    __syncthreads();  // the own rows were read
    copy_tile(0, memory);
    wait_for_copies();
  }

  auto const scale = in.scale * log2_of_e, kept_scale = head.kept_scale();
  auto const own_row = first + warp_row<Shape>();
  bool const dropping = head.mask.active();
  float mean[Shape::template extent<row_tiles>][2], logs[Shape::template extent<row_tiles>][2];
  LOCKSTEP_UNROLL
  for (int m = 0; m < row_tiles; ++m)
    for (int h = 0; h < 2; ++h) {
      auto const row = 16 * m + 8 * h + fragment_row();
      mean[m][h] = own_means[warp_row<Shape>() + row];
      logs[m][h] = own_row + row < head.queries ? log2_sum(log_sums[stripe + own_row + row]) : 0.0f;
    }
  typename Shape::Sums sums = {};
  for (Index at = 0; at < end; at += tile) {
    auto* const keys = memory + at / tile % 2 * Shape::buffer_rows;
    if (at > 0) wait_for_copies();
    __syncthreads();  // this tile has arrived, and the last one was read
    if (at + tile < end) copy_tile(at + tile, memory + (at / tile + 1) % 2 * Shape::buffer_rows);
    if (!by_distance && in.causal && at >= own_row + Shape::warp_rows) continue;
    bool const all = at + tile <= end && (!in.causal || at + tile <= own_row + 1) && !in.bias;
    for (int n = 0; n < tile / 16; ++n) {
      typename Shape::Products scores, ds;
      multiply_channels<Shape>(queries, keys + 16 * n, scores);
      multiply_channels<Shape>(gradients, keys + tile + 16 * n, ds);
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m) {
        auto const kept = dropping ? keep_tile<Side::queries>(in, head, own_row + 16 * m, at + 16 * n) : 0u;
        for (int half = 0; half < 2; ++half)
          for (int i = 0; i < 4; ++i) {
            auto exponent = scale * scores[m][half][i] - logs[m][i / 2];
            if (!all) {
              auto const row = own_row + 16 * m + i / 2 * 8 + fragment_row(),
                         j = at + 16 * n + 8 * half + fragment_column() + i % 2;
              exponent = head.meets(in, row, j) ? exponent + log2_of_e * head.bias(in, row, j)
                                                : -std::numeric_limits<float>::infinity();
            }
            auto dp = ds[m][half][i];
            if (dropping) dp = kept_bit<Side::queries>(kept, half, i) ? dp * kept_scale : 0.0f;
            ds[m][half][i] = fast_exp2(exponent) * (dp - mean[m][i / 2]);
          }
      }
      add_weighted<Shape>(ds, keys + 16 * n, sums);
      if (by_distance) add_by_distance<Shape>(in, first, at + 16 * n, ds, diagonals, by_distance);
    }
  }
  float factors[Shape::template extent<row_tiles>][2];
  for (auto& f : factors) f[0] = f[1] = in.scale;
  __syncthreads();  // the tiles were read
  auto const ahead = static_cast<Index>(warp_row<Shape>());
  write_rows<Shape>(target, query + ahead * in.width, in.width, head.queries - own_row, slots - own_row, head_width,
                    wide, factors, sums, memory);
}

/// Computes the gradients of a block's keys and values in one pass over the queries, with products on tensor cores. The
/// block passes over all heads of queries that share the keys, in order.
template <class T, int channels, int row_tiles>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(128, channels > 64 ? 2 : 3)
    differentiate_keys(AttentionArguments<T> in, bool wide, T const* dout, float const* log_sums, float const* means,
                       AttentionTarget<T> key_target, AttentionTarget<T> value_target) {
  using Shape = FragmentShape<T, channels, row_tiles>;
  constexpr int tile = Shape::tile;
  __shared__ __align__(16) typename Shape::Memory memory;
  __shared__ float statistics[2][2][Shape::template extent<tile>];  // logarithms and means of two tiles

  auto const blocks = (in.keys.length + Shape::own - 1) / Shape::own;
  auto const first_head = Index{blockIdx.x} / blocks * in.sharers, first = Index{blockIdx.x} % blocks * Shape::own;
  AttentionHead<T> const leading(in, first_head);
  auto const slots = in.keys.end(leading.row) - in.keys.start(leading.row);
  if (first >= slots) return;
  auto const head_width = static_cast<int>(in.head_width);
  auto const tokens = leading.keys - first;
  auto const key = leading.key_start(in) + first * in.key_width;
  copy_rows<Shape, Shape::own>(in.key + key, in.key_width, tokens, head_width, wide, memory);
  copy_rows<Shape, Shape::own>(in.value + key, in.key_width, tokens, head_width, wide, memory + Shape::own);
  wait_for_copies();
  __syncthreads();
  typename Shape::Left keys, values;
  load_left<Shape>(memory, keys);
  load_left<Shape>(memory + Shape::own, values);
  __syncthreads();  // the own rows were read

  auto const scale = in.scale * log2_of_e, kept_scale = leading.kept_scale();
  auto const own_row = first + warp_row<Shape>();
  bool const dropping = leading.mask.active();
  typename Shape::Sums key_sums = {}, value_sums = {};
  auto const begin = in.causal ? first : Index{0}, end = leading.queries;
  auto const tiles = begin < end && tokens > 0 ? static_cast<int>((end - begin + tile - 1) / tile) : 0;
  auto const all_tiles = tiles * static_cast<int>(in.sharers);
  auto const copy_tile = [&](int number) {  // of all heads' tiles
    AttentionHead<T> const head(in, first_head + number / tiles);
    auto const at = begin + number % tiles * tile, from = head.query_start(in) + at * in.width;
    auto const buffer = number % 2;
    auto* const to = memory + buffer * Shape::buffer_rows;
    copy_rows<Shape, tile>(in.query + from, in.width, end - at, head_width, wide, to);
    copy_rows<Shape, tile>(dout + from, in.width, end - at, head_width, wide, to + tile);
    if (auto const i = static_cast<int>(threadIdx.x); i < Shape::buffer_rows) {
      bool const there = at + i % tile < end;
      auto const* const statistic = (i < tile ? log_sums : means) + head.index * in.queries.length + at + i % tile;
      copy_async<4>(&statistics[buffer][i / tile][i % tile], there ? statistic : log_sums, there);
    }
  };
  if (tiles > 0) copy_tile(0);
  for (int number = 0; number < all_tiles; ++number) {
    wait_for_copies();
    __syncthreads();  // this tile has arrived, and the last one was read
    if (number + 1 < all_tiles) copy_tile(number + 1);
    AttentionHead<T> const head(in, first_head + number / tiles);
    auto const at = begin + number % tiles * tile;
    auto const buffer = number % 2;
    auto* const queries = memory + buffer * Shape::buffer_rows;
    bool const all = (!in.causal || at + 1 >= own_row + Shape::warp_rows) && !in.bias;
    for (int n = 0; n < tile / 16; ++n) {
      typename Shape::Products scores, ds;
      multiply_channels<Shape>(keys, queries + 16 * n, scores);
      multiply_channels<Shape>(values, queries + tile + 16 * n, ds);
      float logs[4], mean[4];
      for (int q = 0; q < 4; ++q) {
        auto const place = 16 * n + q / 2 * 8 + fragment_column() + q % 2;
        logs[q] = log2_sum(statistics[buffer][0][place]);
        mean[q] = statistics[buffer][1][place];
      }
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m) {
        auto const kept = dropping ? keep_tile<Side::keys>(in, head, at + 16 * n, own_row + 16 * m) : 0u;
        for (int half = 0; half < 2; ++half)
          for (int i = 0; i < 4; ++i) {
            auto const q = 2 * half + i % 2;
            auto exponent = scale * scores[m][half][i] - logs[q];
            if (!all) {
              auto const row = at + 16 * n + 8 * half + fragment_column() + i % 2,
                         j = own_row + 16 * m + i / 2 * 8 + fragment_row();
              exponent = head.meets(in, row, j) ? exponent + log2_of_e * head.bias(in, row, j)
                                                : -std::numeric_limits<float>::infinity();
            }
            auto probability = fast_exp2(exponent), dp = ds[m][half][i];
            bool const keep = !dropping || kept_bit<Side::keys>(kept, half, i);
            if (dropping) dp = keep ? dp * kept_scale : 0.0f;
            ds[m][half][i] = probability * (dp - mean[q]);
            scores[m][half][i] = keep ? probability : 0.0f;
          }
      }
      add_weighted<Shape>(scores, queries + tile + 16 * n, value_sums);
      add_weighted<Shape>(ds, queries + 16 * n, key_sums);
    }
  }
  __syncthreads();  // the tiles were read
  auto const at = key + static_cast<Index>(warp_row<Shape>()) * in.key_width;
  float factors[Shape::template extent<row_tiles>][2];
  for (auto& f : factors) f[0] = f[1] = in.scale;
  write_rows<Shape>(key_target, at, in.key_width, leading.keys - own_row, slots - own_row, head_width, wide, factors,
                    key_sums, memory);
  for (auto& f : factors) f[0] = f[1] = kept_scale;
  write_rows<Shape>(value_target, at, in.key_width, leading.keys - own_row, slots - own_row, head_width, wide, factors,
                    value_sums, memory);
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
