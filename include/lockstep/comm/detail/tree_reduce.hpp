// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tree_sum.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// Elements that are worked on at a time: few enough to stay in the first cache for any number of ranks.
inline constexpr Index reduce_block = 512;

/// What elements are worked on in: sums are rounded, or wrap, once.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, Accumulate<T>>;

/// What an element is stored as: compilers vectorise stores of numbers, not of classes.
template <class T>
[[nodiscard]] auto& bits_of(T& x) noexcept {
  if constexpr (std::is_class_v<T>)
    return x.bits;
  else
    return x;
}
template <class T>
[[nodiscard]] auto bits_of(T const& x) noexcept {
  if constexpr (std::is_class_v<T>)
    return x.bits;
  else
    return x;
}

/// The sum over N ranks of element i, in the tree.
template <int N, class T>
Accumulate<T> tree_at(T const* const* in, Index i) noexcept {
  if constexpr (N == 1) {
    return static_cast<Accumulate<T>>(in[0][i]);
  } else {
    constexpr int left = tree_split(N);
    return tree_at<left>(in, i) + tree_at<N - left>(in + left, i);
  }
}

template <int N, class T>
void tree_block_of(T const* const* in, Index at, Index n, Accumulate<T>* out) noexcept {
  for (Index j = 0; j < n; ++j) out[j] = tree_at<N>(in, at + j);
}

/// out[j] = the sum over ranks of in[rank][at + j], for j < n <= reduce_block; out is none of the inputs.
template <class T>
void tree_block(T const* const* in, int ranks, Index at, Index n, Accumulate<T>* out) noexcept {
  if (ranks == 1) return tree_block_of<1>(in, at, n, out);
  if (ranks == 2) return tree_block_of<2>(in, at, n, out);
  if (ranks == 4) return tree_block_of<4>(in, at, n, out);
  auto const left = tree_split(ranks);
  Accumulate<T> right[reduce_block];
  tree_block(in, left, at, n, out);
  tree_block(in + left, ranks - left, at, n, right);
  for (Index j = 0; j < n; ++j) out[j] += right[j];
}

/// Integers wrap.
template <class A>
void add(A* to, A const* from, Index n) noexcept {
  using Wrapping =
      typename std::conditional_t<std::is_integral_v<A>, std::make_unsigned<A>, std::type_identity<A>>::type;
  for (Index j = 0; j < n; ++j) to[j] = static_cast<A>(static_cast<Wrapping>(to[j]) + static_cast<Wrapping>(from[j]));
}
template <class A>
void raise(A* to, A const* from, Index n) noexcept {
  for (Index j = 0; j < n; ++j) to[j] = to[j] > from[j] || to[j] != to[j] ? to[j] : from[j];
}
template <class A>
void lower(A* to, A const* from, Index n) noexcept {
  for (Index j = 0; j < n; ++j) to[j] = std::min(to[j], from[j]);
}

/// The same as tree_block for any way to combine two blocks: more passes, compiled once per type.
template <class T>
void combine_block(Operation operation, T const* const* in, int ranks, Index at, Index n, Wide<T>* out) noexcept {
  if (ranks == 1) {
    if (operation == Operation::logical_or || operation == Operation::logical_and)
      for (Index j = 0; j < n; ++j) out[j] = in[0][at + j] != T{} ? 1 : 0;
    else
      for (Index j = 0; j < n; ++j) out[j] = static_cast<Wide<T>>(in[0][at + j]);
    return;
  }
  auto const left = tree_split(ranks);
  Wide<T> right[reduce_block];
  combine_block(operation, in, left, at, n, out);
  combine_block(operation, in + left, ranks - left, at, n, right);
  if (operation == Operation::max || operation == Operation::logical_or)
    raise(out, right, n);
  else if (operation == Operation::logical_and)
    lower(out, right, n);
  else
    add(out, right, n);
}

/// Writes block(at, n, result) to every out[k] + at, over begin <= at < end. An output may be an input of the block:
/// each element is read on all ranks before it is written on any.
template <class A, class T, class Block>
void write_blocks(T* const* out, int outputs, Index begin, Index end, Block const& block) noexcept {
  alignas(64) A wide[reduce_block];
  for (auto at = begin; at < end; at += reduce_block) {
    auto const n = std::min(reduce_block, end - at);
    block(at, n, wide);
    if constexpr (std::is_same_v<A, T>) {
      for (int k = 0; k < outputs; ++k) std::memcpy(out[k] + at, wide, static_cast<std::size_t>(n) * sizeof(T));
    } else {
      alignas(64) T narrow[reduce_block];
      for (Index j = 0; j < n; ++j) bits_of(narrow[j]) = bits_of(static_cast<T>(wide[j]));
      for (int k = 0; k < outputs; ++k) std::memcpy(out[k] + at, narrow, static_cast<std::size_t>(n) * sizeof(T));
    }
  }
}

/// data[r][i] = the sum over all ranks r, for the usual numbers of ranks: in one pass, through registers. The ranks'
/// memory is apart.
template <class T>
bool sum_in_place(T* const* data, int ranks, Index begin, Index end) {
  using A = Accumulate<T>;
  if (ranks == 2)
    with_best_instructions([a = data[0], b = data[1], begin, end] {
      for (auto i = begin; i < end; ++i) {
        auto const sum = bits_of(static_cast<T>(A{a[i]} + A{b[i]}));
        bits_of(a[i]) = bits_of(b[i]) = sum;
      }
    });
  if (ranks == 4)
    with_best_instructions([a = data[0], b = data[1], c = data[2], d = data[3], begin, end] {
      for (auto i = begin; i < end; ++i) {
        auto const sum = bits_of(static_cast<T>((A{a[i]} + A{b[i]}) + (A{c[i]} + A{d[i]})));
        bits_of(a[i]) = bits_of(b[i]) = bits_of(c[i]) = bits_of(d[i]) = sum;
      }
    });
  return ranks == 2 || ranks == 4;
}

/// Writes the operation over ranks of in[rank][i] to every out[k][i], for begin <= i < end.
template <class T>
void reduce_range(Operation operation, T const* const* in, int ranks, T* const* out, int outputs, Index begin,
                  Index end) {
  if constexpr (std::is_same_v<Accumulate<T>, float>)
    if (operation == Operation::sum) {  // what gradients are: compiled for every instruction set
      if (outputs == ranks && std::equal(in, in + ranks, out) && sum_in_place(out, ranks, begin, end)) return;
      return with_best_instructions([=] {
        write_blocks<Accumulate<T>>(out, outputs, begin, end, [=](Index at, Index n, Accumulate<T>* block) {
          tree_block(in, ranks, at, n, block);
        });
      });
    }
  write_blocks<Wide<T>>(out, outputs, begin, end, [=](Index at, Index n, Wide<T>* block) {
    combine_block(operation, in, ranks, at, n, block);
    if constexpr (!std::is_integral_v<T>)
      if (operation == Operation::average)
        for (Index j = 0; j < n; ++j) block[j] /= static_cast<Wide<T>>(ranks);
  });
}

/// The same for types that are known at run time only.
inline void reduce_range(Operation operation, ElementType type, void const* const* in, int ranks, void* const* out,
                         int outputs, Index begin, Index end) {
  auto const run = [&]<class T>(T) {
    reduce_range(operation, reinterpret_cast<T const* const*>(in), ranks, reinterpret_cast<T* const*>(out), outputs,
                 begin, end);
  };
  switch (type) {
    case ElementType::float32:
      return run(float{});
    case ElementType::float64:
      return run(double{});
    case ElementType::bfloat16:
      return run(bfloat16{});
    case ElementType::float16:
      return run(float16{});
    case ElementType::int32:
      return run(std::int32_t{});
    case ElementType::int64:
      return run(std::int64_t{});
    case ElementType::uint8:
      return run(std::uint8_t{});
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
