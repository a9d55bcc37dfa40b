// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include <lockstep/comm/piece.hpp>

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

/// How many of `ranks` (two or more) stand in the left branch of the tree.
[[nodiscard]] constexpr int left_branch(int ranks) noexcept {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
}

/// Elements that are worked on at a time: small enough to stay in the first cache, whatever the number of ranks.
inline constexpr Index reduce_block = 256;

/// out[j] = the tree over ranks of in[rank][at + j], for j < n <= reduce_block.
template <class Op, class T>
inline void tree_block(T const* const* in, int ranks, Index at, Index n, T* out) {
  if (ranks == 1) {
    std::memcpy(out, in[0] + at, static_cast<std::size_t>(n) * sizeof(T));
  } else if (ranks == 2) {
    auto const *a = in[0] + at, *b = in[1] + at;
    for (Index j = 0; j < n; ++j) out[j] = Op::combine(a[j], b[j]);
  } else if (ranks == 3) {
    auto const *a = in[0] + at, *b = in[1] + at, *c = in[2] + at;
    for (Index j = 0; j < n; ++j) out[j] = Op::combine(Op::combine(a[j], b[j]), c[j]);
  } else if (ranks == 4) {
    auto const *a = in[0] + at, *b = in[1] + at, *c = in[2] + at, *d = in[3] + at;
    for (Index j = 0; j < n; ++j) out[j] = Op::combine(Op::combine(a[j], b[j]), Op::combine(c[j], d[j]));
  } else {
    auto const left = left_branch(ranks);
    T right[reduce_block];
    tree_block<Op>(in, left, at, n, out);
    tree_block<Op>(in + left, ranks - left, at, n, right);
    for (Index j = 0; j < n; ++j) out[j] = Op::combine(out[j], right[j]);
  }
}

/// Writes the tree over ranks of in[rank][i] to every out[k][i], for begin <= i < end. An output may be an input: each
/// element is read on all ranks before it is written on any.
template <class Op, class T>
void reduce_range(T const* const* in, int ranks, T* const* out, int outputs, Index begin, Index end) {
  alignas(64) T block[reduce_block];
  for (auto at = begin; at < end; at += reduce_block) {
    auto const n = std::min(reduce_block, end - at);
    tree_block<Op>(in, ranks, at, n, block);
    for (int k = 0; k < outputs; ++k) std::memcpy(out[k] + at, block, static_cast<std::size_t>(n) * sizeof(T));
  }
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
