// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <type_traits>

#include <lockstep/kernel/attention/detail/attention_fragments.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes attention for a block's queries of a head in one pass over the keys, with products on tensor cores. The
/// probabilities are rounded to Scalar for the product with the values. Their sums, the scores and the results are
/// float.
template <class Scalar, int channels, int row_tiles, bool drops>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(FragmentShape<Scalar, channels, row_tiles>::threads,
                                            resident_blocks<Scalar>(channels, row_tiles))
    attend_on_tensor_cores(AttentionArguments<Scalar> in, bool wide, Scalar* out, float* log_sums) {
  using Shape = FragmentShape<Scalar, channels, row_tiles>;
  constexpr auto nothing = -std::numeric_limits<float>::infinity();
  constexpr float headroom = 8;
  constexpr int tile = Shape::tile;
  static_assert(Shape::own <= Shape::buffer_rows);
  __shared__ __align__(16) typename Shape::Row fixed[Shape::template extent<Shape::static_rows>];
  typename Shape::Row* memory = fixed;
  if constexpr (Shape::dynamic_bytes > 0) memory = dynamic_shared<typename Shape::Row>();

  auto const blocks = static_cast<int>((in.queries.length + Shape::own - 1) / Shape::own);
  FragmentHead<Scalar> const head(in, blocks, static_cast<int>(in.heads), 1);
  auto const first = (blocks - 1 - head.block) * Shape::own;  // the longest of a causal head first
  if (first >= head.query_slots) return;
  auto const head_width = static_cast<int>(in.head_width);
  auto const query = head.query_start + first * in.width;
  auto const end = in.causal ? min(head.keys, min(first + Shape::own, head.queries)) : head.keys;
  auto* const own = memory + Shape::buffer_rows;
  copy_rows<Shape, Shape::own>(in.query + query, in.width, head.queries - first, head_width, wide, own);
  copy_keys<Shape>(in, head, 0, end, wide, memory);
  wait_for_copies();
  __syncthreads();
  typename Shape::Left queries;
  load_left<Shape>(own, queries);

  // Exponentials are powers of two. Where no bias is added, the scale is multiplied together with the subtraction of
  // the largest score; it must then be positive, so that the largest product is the largest score.
  auto const scale = in.scale * log2_of_e;
  bool const scaled = in.bias || !(scale > 0);
  auto const factor = scaled ? 1.0f : scale;
  auto const own_row = first + warp_row<Shape>();
  [[maybe_unused]] std::conditional_t<drops, FragmentDropout<Scalar>, NoDropout> const dropout(in, head);
  float base[Shape::template extent<row_tiles>][2], total[Shape::template extent<row_tiles>][2] = {};
  typename Shape::Sums sums = {};
  for (auto& b : base) b[0] = b[1] = std::numeric_limits<float>::lowest();  // finite, as infinities have no difference
  for (int at = 0; at < end; at += tile) {
    auto* const keys = memory + at / tile % 2 * Shape::buffer_rows;
    if (at > 0) wait_for_copies();
    __syncthreads();  // this tile has arrived, and the last one was read
    if (at + tile < end)
      copy_keys<Shape>(in, head, at + tile, end, wide, memory + (at / tile + 1) % 2 * Shape::buffer_rows);
    bool const idle = in.causal && at >= own_row + Shape::warp_rows;
    if (Shape::parts == 1 && idle) continue;
    typename Shape::Products scores[Shape::template extent<tile / 16>];
    if (Shape::parts == 1 || !idle) {
      LOCKSTEP_UNROLL
      for (int n = 0; n < tile / 16; ++n) multiply_channels<Shape>(queries, keys + 16 * n, scores[n]);
    }
    if constexpr (Shape::parts > 1) {
      LOCKSTEP_UNROLL
      for (int n = 0; n < tile / 16; n += 2) add_parts<Shape>(idle, scores[n], scores[n + 1]);
      if (idle) continue;
    }
    if (scaled || at + tile > end || (in.causal && at + tile > own_row + 1)) {
      auto const* const bias = in.bias ? head.bias(in) : nullptr;
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m)
        for (int h = 0; h < 2; ++h) {
          auto const i = own_row + 16 * m + 8 * h + fragment_row();
          auto const limit = i < head.queries ? in.causal ? min(end, i + 1) : end : 0;
          LOCKSTEP_UNROLL
          for (int n = 0; n < tile / 8; ++n)
            for (int e = 0; e < 2; ++e) {
              auto& score = scores[n / 2][m][n % 2][2 * h + e];
              auto const j = at + permuted_row(n, e);
              if (scaled) score *= scale;
              if (j >= limit)
                score = nothing;
              else if (bias)
                score += log2_of_e * static_cast<float>(bias[j - i]);
            }
        }
    }
    // A row's sums are multiples of 2^base. Larger scores change the base only if the exponentials would exceed
    // 2^headroom, so most tiles need no multiplication of all sums. A row's base depends on no other row.
    float bases[Shape::template extent<row_tiles>][2];
    bool changed = false;
    LOCKSTEP_UNROLL
    for (int m = 0; m < row_tiles; ++m)
      for (int h = 0; h < 2; ++h) {
        auto largest = nothing;
        LOCKSTEP_UNROLL
        for (int n = 0; n < tile / 8; ++n)
          for (int e = 0; e < 2; ++e) largest = max(largest, scores[n / 2][m][n % 2][2 * h + e]);
        largest = max(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = max(largest, __shfl_xor_sync(~0u, largest, 2)) * factor;
        bool const rises = largest > base[m][h] + headroom;
        bases[m][h] = rises ? largest : base[m][h];
        changed = changed || rises;
      }
    if (__any_sync(~0u, changed)) {
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m)
        for (int h = 0; h < 2; ++h) {
          auto const correction = fast_exp2(base[m][h] - bases[m][h]);  // 1 if the base is equal
          base[m][h] = bases[m][h];
          total[m][h] *= correction;
          for (auto& tile_sums : sums[m])
            for (int e = 0; e < 2; ++e) tile_sums[2 * h + e] *= correction;
        }
    }
    LOCKSTEP_UNROLL
    for (int m = 0; m < row_tiles; ++m)
      for (int h = 0; h < 2; ++h) {
        float sum = 0;
        LOCKSTEP_UNROLL
        for (int n = 0; n < tile / 8; ++n)
          for (int e = 0; e < 2; ++e) {
            auto& score = scores[n / 2][m][n % 2][2 * h + e];
            score = fast_exp2(score * factor - base[m][h]);
            sum += score;
          }
        total[m][h] += sum;
      }
    if constexpr (drops) {
      LOCKSTEP_UNROLL
      for (int m = 0; m < row_tiles; ++m)
        for (int h = 0; h < 2; ++h)
          dropout.template for_keys<tile / 32>(own_row + 16 * m + 8 * h + fragment_row(), 0, at + permuted_row(0, 0),
                                               32, [&](int group, int n, int e, bool keep) {
                                                 if (!keep) scores[2 * group + n / 2][m][n % 2][2 * h + e] = 0;
                                               });
    }
    LOCKSTEP_UNROLL
    for (int n = 0; n < tile / 16; ++n) add_weighted<Shape>(scores[n], keys + tile + 16 * n, sums);
  }
  float factors[Shape::template extent<row_tiles>][2];
  LOCKSTEP_UNROLL
  for (int m = 0; m < row_tiles; ++m)
    for (int h = 0; h < 2; ++h) {
      auto sum = total[m][h];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      factors[m][h] = sum > 0 || sum != sum ? in.kept_scale / sum : 0.0f;
      auto const i = own_row + 16 * m + 8 * h + fragment_row();
      if (fragment_column() == 0 && warp_channel<Shape>() == 0 && i < head.queries)
        log_sums[head.index * in.queries.length + i] = (base[m][h] + fast_log2(sum)) * (1 / log2_of_e);
    }
  __syncthreads();  // the tiles were read
  write_rows<Shape>({out, Write::overwrite}, query + warp_row<Shape>() * in.width, in.width, head.queries - own_row,
                    head.query_slots - own_row, head_width, wide, factors, sums, memory);
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
