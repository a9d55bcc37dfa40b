// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns where the balanced binary tree over n ≥ 2 terms splits: the left side takes the largest power of two below
/// n. For n = 2: (0+1), 3: (0+1)+2, 4: (0+1)+(2+3), 5: ((0+1)+(2+3))+4.
[[nodiscard]] constexpr int tree_split(int n) noexcept {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(n - 1)));
}

/// Returns term(first) + … + term(first + n - 1), summed in the balanced binary tree, n ≥ 1. All code that sums over
/// shards, replicas and ranks uses this order, so that all sums are bit-identical.
/// @determinism bitwise
template <class Term>
[[nodiscard]] constexpr auto tree_sum(int n, Term const& term, int first = 0) {
  if (n == 1) return term(first);
  int const left = tree_split(n);
  return tree_sum(left, term, first) + tree_sum(n - left, term, first + left);
}

namespace detail {
template <int Count, class Value>
[[nodiscard, gnu::always_inline]] constexpr Value tree_sum_at(Value* const* sources, Index i) noexcept {
  if constexpr (Count == 1) {
    return sources[0][i];
  } else {
    constexpr int left = tree_split(Count);
    return tree_sum_at<left>(sources, i) + tree_sum_at<Count - left>(sources + left, i);
  }
}
template <int Count, class Value>
void tree_sum_range(Value* const* sources, Index begin, Index end) noexcept {
  with_best_instructions([=] {
    for (Index i = begin; i < end; ++i) sources[0][i] = tree_sum_at<Count>(sources, i);
  });
}

inline constexpr Index tree_sum_block = 256;  // elements
/// Computes out[k] = tree sum over n sources of [begin + k], for k in [0, count), of a block at most. `out` may be the
/// first source's elements.
template <class Value>
[[gnu::noinline]] void tree_sum_of_block(Value* const* sources, int n, Index begin, Index count, Value* out) noexcept {
  if (n == 1) {
    if (out != sources[0] + begin) std::copy_n(sources[0] + begin, count, out);
    return;
  }
  int const left = tree_split(n);
  std::array<Value, static_cast<std::size_t>(tree_sum_block)> right;
  tree_sum_of_block(sources, left, begin, count, out);
  tree_sum_of_block(sources + left, n - left, begin, count, right.data());
  for (Index k = 0; k < count; ++k) out[k] += right[static_cast<std::size_t>(k)];
}
}  // namespace detail

/// Computes sources[0][i] = tree sum over all sources of [i], for i in [begin, end). Leaves the other sources
/// unchanged. Sources must not overlap. Common counts have their own loops, which vectorize.
template <class Value>
void tree_sum_into_first(std::span<Value* const> sources, Index begin, Index end) noexcept {
  auto const n = static_cast<int>(sources.size());
  auto* const* s = sources.data();
  switch (n) {
    case 1:
      return;
    case 2:
      return detail::tree_sum_range<2>(s, begin, end);
    case 3:
      return detail::tree_sum_range<3>(s, begin, end);
    case 4:
      return detail::tree_sum_range<4>(s, begin, end);
    case 8:
      return detail::tree_sum_range<8>(s, begin, end);
    default:
      for (Index at = begin; at < end; at += detail::tree_sum_block)
        detail::tree_sum_of_block(s, n, at, std::min(end - at, detail::tree_sum_block), s[0] + at);
  }
}

#if defined(LOCKSTEP_COMPILED)
extern template void tree_sum_into_first<float>(std::span<float* const> sources, Index begin, Index end) noexcept;
extern template void tree_sum_into_first<double>(std::span<double* const> sources, Index begin, Index end) noexcept;
#endif

}}  // namespace lockstep
