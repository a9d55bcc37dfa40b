// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>

#include <lockstep/kernel/attention/detail/attention_fragments.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
/// Bytes that the bits of one query take: whole blocks of 64 keys.
[[nodiscard]] constexpr Index kept_pitch(Index keys) noexcept { return (keys + 63) / 64 * 8; }

inline namespace LOCKSTEP_CUDA_ABI {

/// Numbers of one query that the backward pass needs.
struct alignas(8) QueryStatistics {
  float log2_sum;  // logarithm to base 2 of the sum of exponentials; any number if the query has no key
  float mean;      // out . dout
};

/// Rows of `out` that are divided among the block's warps, 16 bytes per lane, loaded before their use.
template <class Shape>
struct OwnOutputs {
  using Scalar = typename Shape::Scalar;
  static constexpr int lanes = Shape::groups < 8 ? Shape::groups : 8;  // of a row
  static constexpr int rows = 32 / lanes, passes = Shape::own / Shape::warps / rows, pieces = Shape::groups / lanes;
  Scalar outputs[Shape::template extent<passes>][Shape::template extent<pieces>][Shape::template extent<Shape::access>];

  __device__ OwnOutputs(Scalar const* out, Index stride, int tokens, int head_width, bool wide) noexcept {
    LOCKSTEP_UNROLL
    for (int n = 0; n < passes; ++n) {
      LOCKSTEP_UNROLL
      for (int p = 0; p < pieces; ++p) {
        auto const row = row_of(n), c = channel_of(p);
        auto const* const from = out + row * stride + c;
        auto& to = outputs[n][p];
        bool const here = row < tokens;
        if (wide) {
          uint4 piece{0, 0, 0, 0};
          if (here && c < head_width) piece = *reinterpret_cast<uint4 const*>(from);
          std::memcpy(static_cast<void*>(to), &piece, sizeof piece);
        } else {
          LOCKSTEP_UNROLL
          for (int k = 0; k < Shape::access; ++k) to[k] = here && c + k < head_width ? from[k] : Scalar{};
        }
      }
    }
  }
  [[nodiscard]] static __device__ int row_of(int pass) noexcept {
    return static_cast<int>(threadIdx.x) / 32 * (passes * rows) + pass * rows +
           static_cast<int>(threadIdx.x) % 32 / lanes;
  }
  [[nodiscard]] static __device__ int channel_of(int piece) noexcept {
    return (piece * lanes + static_cast<int>(threadIdx.x) % lanes) * Shape::access;
  }
  /// Computes the mean of each row, with dout from shared memory, and completes `statistics`.
  __device__ void multiply(typename Shape::Row const* dout, QueryStatistics* statistics) const noexcept {
    LOCKSTEP_UNROLL
    for (int n = 0; n < passes; ++n) {
      float sum = 0;
      LOCKSTEP_UNROLL
      for (int p = 0; p < pieces; ++p) {
        Scalar gradients[Shape::template extent<Shape::access>];
        auto const piece = *reinterpret_cast<uint4 const*>(&dout[row_of(n)][channel_of(p)]);
        std::memcpy(static_cast<void*>(gradients), &piece, sizeof piece);
        LOCKSTEP_UNROLL
        for (int k = 0; k < Shape::access; ++k)
          sum += static_cast<float>(outputs[n][p][k]) * static_cast<float>(gradients[k]);
      }
      for (unsigned distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
      if (threadIdx.x % lanes == 0) statistics[row_of(n)].mean = sum;
    }
    __syncwarp();
  }
};

/// Adds the bias's gradient by distance for 32 keys from `key` on: the diagonals of ds. The whole block must call it.
template <class Shape, class Scalar>
__device__ void add_by_distance(AttentionArguments<Scalar> const& in, int query, int key,
                                typename Shape::Products const (&ds)[2], float (*diagonals)[33],
                                float* by_distance) noexcept {
  if (warp_channel<Shape>() == 0) {
    LOCKSTEP_UNROLL
    for (int m = 0; m < Shape::row_tiles; ++m)
      for (int n = 0; n < 4; ++n)
        for (int i = 0; i < 4; ++i)
          diagonals[warp_row<Shape>() + 16 * m + i / 2 * 8 + fragment_row()][permuted_row(n, i % 2)] =
              ds[n / 2][m][n % 2][i];
  }
  __syncthreads();
  for (auto d = static_cast<int>(threadIdx.x); d < Shape::own + 31; d += Shape::threads) {
    auto const diagonal = d - (Shape::own - 1);  // key - query, within the tile
    float sum = 0;
    for (int i = max(0, -diagonal); i < Shape::own && i + diagonal < 32; ++i) sum += diagonals[i][i + diagonal];
    auto const distance = key - query + diagonal + in.queries.length - 1;
    if (distance >= 0 && distance < in.distances) by_distance[Index{blockIdx.x} * in.distances + distance] += sum;
  }
  __syncthreads();
}

/// Computes the gradient of a block's queries in one pass over the keys, with products on tensor cores. Also writes
/// `statistics` [heads of all rows, queries.length] and, with dropout, `bits` [heads of all rows, queries.length,
/// kept_pitch(keys.length)], which the keys' kernel reads. The bias's gradient goes to
/// by_distance [blocks, distances], which the caller sets to zero; null: skipped. Only for row_tiles == 1.
template <class Scalar, int channels, int row_tiles, bool drops>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(FragmentShape<Scalar, channels, row_tiles>::threads,
                                            resident_blocks<Scalar>(channels, row_tiles))
    differentiate_queries(AttentionArguments<Scalar> in, bool wide, Scalar const* out, Scalar const* dout,
                          float const* log_sums, QueryStatistics* statistics, std::uint8_t* bits,
                          AttentionTarget<Scalar> target, float* by_distance) {
  using Shape = FragmentShape<Scalar, channels, row_tiles>;
  constexpr auto nothing = -std::numeric_limits<float>::infinity();
  constexpr int tile = Shape::tile;
  constexpr bool separate = Shape::own <= tile;   // the own rows and the first tile fit together
  static_assert(Shape::parts == 1 || !separate);  // a barrier follows the means of rows
  __shared__ __align__(16) typename Shape::Row fixed[Shape::template extent<Shape::static_rows>];
  typename Shape::Row* memory = fixed;
  if constexpr (Shape::dynamic_bytes > 0) memory = dynamic_shared<typename Shape::Row>();
  __shared__ QueryStatistics own_statistics[Shape::template extent<Shape::own>];
  constexpr bool may_add_bias = row_tiles == 1;  // otherwise the diagonals' shared memory exceeds 48 KB
  __shared__ float diagonals[Shape::template extent < may_add_bias ? Shape::own : 1 > ][33];

  auto const blocks = static_cast<int>((in.queries.length + Shape::own - 1) / Shape::own);
  FragmentHead<Scalar> const head(in, blocks, static_cast<int>(in.heads), 1);
  auto const first = (blocks - 1 - head.block) * Shape::own;
  if (first >= head.query_slots) return;
  auto const head_width = static_cast<int>(in.head_width), tokens = head.queries - first;
  auto const query = head.query_start + first * in.width;
  auto const end = in.causal ? min(head.keys, min(first + Shape::own, head.queries)) : head.keys;
  auto* const own = separate ? memory + Shape::buffer_rows : memory;
  copy_rows<Shape, Shape::own>(in.query + query, in.width, tokens, head_width, wide, own);
  copy_rows<Shape, Shape::own>(dout + query, in.width, tokens, head_width, wide, own + Shape::own);
  if (separate) copy_keys<Shape>(in, head, 0, end, wide, memory);
  OwnOutputs<Shape> const outputs(out + query, in.width, tokens, head_width, wide);
  auto const first_statistic = head.index * in.queries.length + first;
  for (auto i = static_cast<int>(threadIdx.x); i < Shape::own; i += Shape::threads) {
    auto const log_sum = i < tokens ? log_sums[first_statistic + i] : nothing;
    own_statistics[i].log2_sum = log_sum == nothing ? 0.0f : log_sum * log2_of_e;
  }
  wait_for_copies();
  __syncthreads();
  outputs.multiply(own + Shape::own, own_statistics);
  typename Shape::Left queries, gradients;
  load_left<Shape>(own, queries);
  load_left<Shape>(own + Shape::own, gradients);
  if (!separate) {
    __syncthreads();  // the own rows were read
    copy_keys<Shape>(in, head, 0, end, wide, memory);
    wait_for_copies();
  }

  auto const scale = in.scale * log2_of_e, kept_scale = in.kept_scale;
  auto const own_row = first + warp_row<Shape>();
  [[maybe_unused]] std::conditional_t<drops, FragmentDropout<Scalar>, NoDropout> const dropout(in, head);
  auto const pitch = kept_pitch(in.keys.length);
  auto* const own_bits = bits + head.index * in.queries.length * pitch;
  float mean[Shape::template extent<row_tiles>][2], logs[Shape::template extent<row_tiles>][2];
  LOCKSTEP_UNROLL
  for (int m = 0; m < row_tiles; ++m)
    for (int h = 0; h < 2; ++h) {
      auto const row = warp_row<Shape>() + 16 * m + 8 * h + fragment_row();
      auto const statistic = own_statistics[row];
      mean[m][h] = statistic.mean;
      logs[m][h] = statistic.log2_sum;
      if (fragment_column() == 0 && warp_channel<Shape>() == 0 && row < tokens)
        statistics[first_statistic + row] = statistic;
    }
  typename Shape::Sums sums = {};
  for (int at = 0; at < end; at += tile) {
    auto* const keys = memory + at / tile % 2 * Shape::buffer_rows;
    if (at > 0) wait_for_copies();
    __syncthreads();  // this tile has arrived, and the last one was read
    if (at + tile < end)
      copy_keys<Shape>(in, head, at + tile, end, wide, memory + (at / tile + 1) % 2 * Shape::buffer_rows);
    bool const idle = !(may_add_bias && by_distance) && in.causal && at >= own_row + Shape::warp_rows;
    if (Shape::parts == 1 && idle) continue;
    bool const masked = in.bias || at + tile > end || (in.causal && at + tile > own_row + 1);
    LOCKSTEP_UNROLL
    for (int group = 0; group < tile / 32; ++group) {  // 32 keys
      typename Shape::Products scores[2], ds[2];
      LOCKSTEP_UNROLL
      for (int b = 0; b < 2; ++b) {
        if (Shape::parts == 1 || !idle) {
          multiply_channels<Shape>(queries, keys + 32 * group + 16 * b, scores[b]);
          multiply_channels<Shape>(gradients, keys + tile + 32 * group + 16 * b, ds[b]);
        }
        if constexpr (Shape::parts > 1) add_parts<Shape>(idle, scores[b], ds[b]);
      }
      if (Shape::parts > 1 && idle) continue;
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m) {
        LOCKSTEP_UNROLL
        for (int n = 0; n < 4; ++n)
          for (int i = 0; i < 4; ++i) {
            auto& score = scores[n / 2][m][n % 2][i];
            score = scale * score - logs[m][i / 2];
          }
        if (masked) {
          auto const* const bias = in.bias ? head.bias(in) : nullptr;
          LOCKSTEP_UNROLL
          for (int n = 0; n < 4; ++n)
            for (int i = 0; i < 4; ++i) {
              auto const row = own_row + 16 * m + i / 2 * 8 + fragment_row();
              auto const limit = row < head.queries ? in.causal ? min(end, row + 1) : end : 0;
              auto const j = at + permuted_row(4 * group + n, i % 2);
              auto& score = scores[n / 2][m][n % 2][i];
              if (j >= limit)
                score = nothing;
              else if (bias)
                score += log2_of_e * static_cast<float>(bias[j - row]);
            }
        }
        if constexpr (drops) {
          auto const first_row = own_row + 16 * m + fragment_row(), key = at + permuted_row(4 * group, 0);
          unsigned kept[2] = {};
          dropout.template for_keys<2>(first_row, 8, key, 0, [&](int h, int n, int e, bool keep) {
            auto& dp = ds[n / 2][m][n % 2][2 * h + e];
            dp = keep ? dp : 0.0f;
            kept[h] |= keep ? 1u << (2 * n + e) : 0u;
          });
          for (int h = 0; h < 2; ++h)
            if (auto const row = first_row + 8 * h; warp_channel<Shape>() == 0 && row < head.queries)
              own_bits[row * pitch + key / 8] = static_cast<std::uint8_t>(kept[h]);
        }
        LOCKSTEP_UNROLL
        for (int n = 0; n < 4; ++n)
          for (int i = 0; i < 4; ++i) {
            auto& d = ds[n / 2][m][n % 2][i];
            d = fast_exp2(scores[n / 2][m][n % 2][i]) * ((drops ? kept_scale * d : d) - mean[m][i / 2]);
          }
      }
      LOCKSTEP_UNROLL
      for (int b = 0; b < 2; ++b) add_weighted<Shape>(ds[b], keys + 32 * group + 16 * b, sums);
      if constexpr (may_add_bias)
        if (by_distance) add_by_distance<Shape>(in, first, at + 32 * group, ds, diagonals, by_distance);
    }
  }
  float factors[Shape::template extent<row_tiles>][2];
  for (auto& f : factors) f[0] = f[1] = in.scale;
  __syncthreads();  // the tiles were read
  write_rows<Shape>(target, query + warp_row<Shape>() * in.width, in.width, head.queries - own_row,
                    head.query_slots - own_row, head_width, wide, factors, sums, memory);
}

/// Computes the gradients of a block's keys and values in one pass over the queries, with products on tensor cores. The
/// block passes over all heads of queries that share the keys, in order.
template <class Scalar, int channels, int row_tiles, bool drops>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(FragmentShape<Scalar, channels, row_tiles>::threads,
                                            resident_blocks<Scalar>(channels, row_tiles))
    differentiate_keys(AttentionArguments<Scalar> in, bool wide, Scalar const* dout, QueryStatistics const* statistics,
                       std::uint8_t const* bits, AttentionTarget<Scalar> key_target,
                       AttentionTarget<Scalar> value_target) {
  using Shape = FragmentShape<Scalar, channels, row_tiles>;
  constexpr auto nothing = -std::numeric_limits<float>::infinity();
  constexpr int tile = Shape::tile;
  __shared__ __align__(16) typename Shape::Row fixed[Shape::template extent<Shape::static_rows>];
  typename Shape::Row* memory = fixed;
  if constexpr (Shape::dynamic_bytes > 0) memory = dynamic_shared<typename Shape::Row>();
  __shared__ QueryStatistics tile_statistics[2][Shape::template extent<tile>];
  __shared__ __align__(8)
      std::uint8_t tile_bits[2][Shape::template extent < drops ? tile : 1 > ][8];  // of the own keys
  static_assert(!drops || Shape::own == 64);

  auto const blocks = static_cast<int>((in.keys.length + Shape::own - 1) / Shape::own);
  auto const shared_heads = static_cast<int>(in.query_heads_per_key_head);
  FragmentHead<Scalar> head(in, blocks, static_cast<int>(in.heads) / shared_heads, shared_heads);
  auto const first = head.block * Shape::own;
  if (first >= head.key_slots) return;
  auto const head_width = static_cast<int>(in.head_width), tokens = head.keys - first;
  auto const key = head.key_start + first * in.key_width;
  copy_rows<Shape, Shape::own>(in.key + key, in.key_width, tokens, head_width, wide, memory);
  copy_rows<Shape, Shape::own>(in.value + key, in.key_width, tokens, head_width, wide, memory + Shape::own);
  wait_for_copies();
  __syncthreads();
  typename Shape::Left keys, values;
  load_left<Shape>(memory, keys);
  load_left<Shape>(memory + Shape::own, values);
  __syncthreads();  // the own rows were read

  auto const scale = in.scale * log2_of_e, kept_scale = in.kept_scale;
  auto const own_row = first + warp_row<Shape>();
  auto const pitch = kept_pitch(in.keys.length);
  typename Shape::Sums key_sums = {}, value_sums = {};
  auto const begin = in.causal ? first : 0, end = tokens > 0 ? head.queries : 0;
  auto next = head;  // the head of the next tile
  auto next_at = begin;
  auto const copy_next = [&](int buffer) {
    auto const from = next.query_start + next_at * in.width;
    auto* const to = memory + buffer * Shape::buffer_rows;
    copy_rows<Shape, tile>(in.query + from, in.width, end - next_at, head_width, wide, to);
    copy_rows<Shape, tile>(dout + from, in.width, end - next_at, head_width, wide, to + tile);
    if (auto const i = static_cast<int>(threadIdx.x); i < tile) {
      bool const valid = next_at + i < end;
      auto const query = valid ? next.index * in.queries.length + next_at + i : Index{0};
      copy_async<8>(&tile_statistics[buffer][i], statistics + query, valid);
      if constexpr (drops) copy_async<8>(tile_bits[buffer][i], bits + query * pitch + first / 8, valid);
    }
    next_at += tile;
    if (next_at >= end) {
      next_at = begin;
      next.advance(in);
    }
  };
  auto const last_head = head.index + shared_heads;
  if (begin < end) copy_next(0);
  auto buffer = 0;
  for (int sharer = 0; sharer < shared_heads; ++sharer, head.advance(in))
    for (auto at = begin; at < end; at += tile, buffer = 1 - buffer) {
      auto* const queries = memory + buffer * Shape::buffer_rows;
      wait_for_copies();
      __syncthreads();  // this tile has arrived, and the last one was read
      if (next.index < last_head) copy_next(1 - buffer);
      bool const idle = tile < Shape::own && in.causal && at + tile <= own_row;
      if (Shape::parts == 1 && idle) continue;
      bool const masked = in.bias || (in.causal && at + 1 < own_row + Shape::warp_rows);
      LOCKSTEP_UNROLL
      for (int n = 0; n < tile / 16; ++n) {
        typename Shape::Products scores, ds;
        if (Shape::parts == 1 || !idle) {
          multiply_channels<Shape>(keys, queries + 16 * n, scores);
          multiply_channels<Shape>(values, queries + tile + 16 * n, ds);
        }
        if constexpr (Shape::parts > 1) {
          add_parts<Shape>(idle, scores, ds);
          if (idle) continue;
        }
        float logs[4], mean[4];  // of queries 2t, 2t + 1, 2t + 8, 2t + 9
        for (int q = 0; q < 4; ++q) {
          auto const statistic = tile_statistics[buffer][16 * n + q / 2 * 8 + fragment_column() + q % 2];
          logs[q] = statistic.log2_sum;
          mean[q] = statistic.mean;
        }
        LOCKSTEP_UNROLL
        for (int m = 0; m < row_tiles; ++m) {
          for (int half = 0; half < 2; ++half)
            for (int i = 0; i < 4; ++i) scores[m][half][i] = scale * scores[m][half][i] - logs[2 * half + i % 2];
          if (masked) {
            auto const* const bias = in.bias ? head.bias(in) : nullptr;
            for (int half = 0; half < 2; ++half)
              for (int i = 0; i < 4; ++i) {
                auto const query = at + 16 * n + 8 * half + fragment_column() + i % 2,
                           j = own_row + 16 * m + i / 2 * 8 + fragment_row();
                if (query >= end || j >= head.keys || (in.causal && j > query))
                  scores[m][half][i] = nothing;
                else if (bias)
                  scores[m][half][i] += log2_of_e * static_cast<float>(bias[j - query]);
              }
          }
          for (int half = 0; half < 2; ++half)
            for (int i = 0; i < 4; ++i) scores[m][half][i] = fast_exp2(scores[m][half][i]);
          if constexpr (drops) {
            unsigned kept = 0;  // bit 4 * half + i is for that element
            LOCKSTEP_UNROLL
            for (int q = 0; q < 4; ++q) {
              auto const* const of_query = tile_bits[buffer][16 * n + q / 2 * 8 + fragment_column() + q % 2];
              auto const shift = q / 2 * 4 + q % 2, byte = warp_row<Shape>() / 8 + 2 * m;
              kept |= (of_query[byte] >> fragment_row() & 1u) << shift;
              kept |= (of_query[byte + 1] >> fragment_row() & 1u) << (shift + 2);
            }
            for (int half = 0; half < 2; ++half)
              for (int i = 0; i < 4; ++i) {
                auto &probability = scores[m][half][i], &d = ds[m][half][i];
                bool const keep = (kept >> (4 * half + i) & 1u) != 0;
                d = probability * (kept_scale * (keep ? d : 0.0f) - mean[2 * half + i % 2]);
                if (!keep) probability = 0;
              }
          } else {
            for (int half = 0; half < 2; ++half)
              for (int i = 0; i < 4; ++i)
                ds[m][half][i] = scores[m][half][i] * (ds[m][half][i] - mean[2 * half + i % 2]);
          }
        }
        add_weighted<Shape>(scores, queries + tile + 16 * n, value_sums);
        add_weighted<Shape>(ds, queries + 16 * n, key_sums);
      }
    }
  __syncthreads();  // the tiles were read
  auto const at = key + warp_row<Shape>() * in.key_width;
  float factors[Shape::template extent<row_tiles>][2];
  for (auto& f : factors) f[0] = f[1] = in.scale;
  write_rows<Shape>(key_target, at, in.key_width, head.keys - own_row, head.key_slots - own_row, head_width, wide,
                    factors, key_sums, memory);
  for (auto& f : factors) f[0] = f[1] = kept_scale;
  write_rows<Shape>(value_target, at, in.key_width, head.keys - own_row, head.key_slots - own_row, head_width, wide,
                    factors, value_sums, memory);
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
