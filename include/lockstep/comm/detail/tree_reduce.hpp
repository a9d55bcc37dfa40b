// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tree_sum.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

struct Sum {
  template <class T>
  static T combine(T a, T b) noexcept {
    return a + b;
  }
};
struct Max {
  template <class T>
  static T combine(T a, T b) noexcept {
    return a > b || a != a ? a : b;
  }
};

/// The tree over N ranks of element i.
template <class Op, int N, class T>
T tree_at(T const* const* in, Index i) noexcept {
  if constexpr (N == 1) {
    return in[0][i];
  } else {
    constexpr int left = tree_split(N);
    return Op::combine(tree_at<Op, left>(in, i), tree_at<Op, N - left>(in + left, i));
  }
}

/// Elements that are worked on at a time: few enough to stay in the first cache for any number of ranks.
inline constexpr Index reduce_block = 512;

template <class Op, int N, class T>
void tree_block_of(T const* const* in, Index at, Index n, T* out) noexcept {
  for (Index j = 0; j < n; ++j) out[j] = tree_at<Op, N>(in, at + j);
}

/// out[j] = the tree over ranks of in[rank][at + j], for j < n <= reduce_block; out is none of the inputs.
template <class Op, class T>
void tree_block(T const* const* in, int ranks, Index at, Index n, T* out) noexcept {
  if (ranks == 1) return tree_block_of<Op, 1>(in, at, n, out);
  if (ranks == 2) return tree_block_of<Op, 2>(in, at, n, out);
  if (ranks == 3) return tree_block_of<Op, 3>(in, at, n, out);
  if (ranks == 4) return tree_block_of<Op, 4>(in, at, n, out);
  auto const left = tree_split(ranks);
  T right[reduce_block];
  tree_block<Op>(in, left, at, n, out);
  tree_block<Op>(in + left, ranks - left, at, n, right);
  for (Index j = 0; j < n; ++j) out[j] = Op::combine(out[j], right[j]);
}

/// Writes the tree over ranks of in[rank][i] to every out[k][i], for begin <= i < end. An output may be an input: each
/// element is read on all ranks before it is written on any.
template <class Op, class T>
void reduce_range(T const* const* in, int ranks, T* const* out, int outputs, Index begin, Index end) {
  with_best_instructions([=] {
    alignas(64) T block[reduce_block];
    for (auto at = begin; at < end; at += reduce_block) {
      auto const n = std::min(reduce_block, end - at);
      tree_block<Op>(in, ranks, at, n, block);
      for (int k = 0; k < outputs; ++k) std::memcpy(out[k] + at, block, static_cast<std::size_t>(n) * sizeof(T));
    }
  });
}

/// The same for types that are known at run time only.
inline void reduce_range(Operation operation, ElementType type, void const* const* in, int ranks, void* const* out,
                         int outputs, Index begin, Index end) {
  auto const run = [&]<class T>(T) {
    auto const* const* from = reinterpret_cast<T const* const*>(in);
    auto* const* to = reinterpret_cast<T* const*>(out);
    if (operation == Operation::sum)
      reduce_range<Sum>(from, ranks, to, outputs, begin, end);
    else
      reduce_range<Max>(from, ranks, to, outputs, begin, end);
  };
  type == ElementType::float32 ? run(float{}) : run(double{});
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
