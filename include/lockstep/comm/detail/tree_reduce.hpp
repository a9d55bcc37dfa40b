// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tree_sum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Elements of one block: few enough to stay in the first-level cache for any number of ranks.
inline constexpr Index reduce_block = 512;

/// Limit of pending blocks in the tree, enough for 2^(max_levels - 2) ranks.
inline constexpr int max_levels = 16;

/// Returns an element's storage: compilers vectorize stores of numbers, not of classes.
template <class Value>
[[nodiscard]] auto& bits_of(Value& x) noexcept {
  if constexpr (std::is_class_v<Value>)
    return x.bits;
  else
    return x;
}
template <class Value>
[[nodiscard]] auto bits_of(Value const& x) noexcept {
  if constexpr (std::is_class_v<Value>)
    return x.bits;
  else
    return x;
}

/// Type in which elements are reduced, so that sums are rounded once.
template <class Value>
using ReductionType = typename std::conditional_t<std::is_class_v<Value>, lockstep::detail::AccumulateOf<Value>,
                                                  std::type_identity<Value>>::type;

/// Converts narrow elements to float.
template <class Value>
void widen(Value const* from, Index n, float* to) {
  with_best_instructions([=] {
    for (Index j = 0; j < n; ++j) to[j] = float{from[j]};
  });
}
template <class Value>
void narrow(float const* from, Index n, Value* to) {
  with_best_instructions([=] {
    for (Index j = 0; j < n; ++j) bits_of(to[j]) = bits_of(static_cast<Value>(from[j]));
  });
}
template <class Accumulator>
void divide(Accumulator* x, Index n, Accumulator by) {
  with_best_instructions([=] {
    for (Index j = 0; j < n; ++j) x[j] /= by;
  });
}

/// Combines two elements. Has no branches, so that loops over it vectorize.
template <Reduction reduction, class Accumulator>
[[nodiscard]] Accumulator combine(Accumulator x, Accumulator y) noexcept {
  if constexpr (reduction == Reduction::max) {
    return x > y || x != x ? x : y;
  } else if constexpr (reduction == Reduction::logical_or) {
    return static_cast<Accumulator>((x | y) != 0);
  } else if constexpr (reduction == Reduction::logical_and) {
    return static_cast<Accumulator>((x != 0) & (y != 0));
  } else if constexpr (std::is_integral_v<Accumulator>) {
    using Wrapping = std::make_unsigned_t<Accumulator>;
    return static_cast<Accumulator>(static_cast<Wrapping>(x) + static_cast<Wrapping>(y));
  } else {
    return x + y;
  }
}

/// Combines to[j] with from[j]. Compiled once for each operation and type.
template <class Accumulator>
void merge(Reduction reduction, Accumulator* to, Accumulator const* from, Index n) {
  auto const run = [=]<Reduction chosen>(std::integral_constant<Reduction, chosen>) {
    with_best_instructions([=] {
      for (Index j = 0; j < n; ++j) to[j] = combine<chosen>(to[j], from[j]);
    });
  };
  if (reduction == Reduction::max) return run(std::integral_constant<Reduction, Reduction::max>{});
  if constexpr (std::is_integral_v<Accumulator>) {
    if (reduction == Reduction::logical_or) return run(std::integral_constant<Reduction, Reduction::logical_or>{});
    if (reduction == Reduction::logical_and) return run(std::integral_constant<Reduction, Reduction::logical_and>{});
  }
  run(std::integral_constant<Reduction, Reduction::sum>{});
}

/// Stack of blocks of a reduction that are not yet merged in the tree, the block of most ranks first.
template <class Value>
class PendingBlocks {
 public:
  using Accumulator = ReductionType<Value>;

  /// Reduces elements [at, at + n) of all ranks, n <= reduce_block. Returns the result, in `out` if it is not null and
  /// Value needs no conversion, else in this object. Merges pairs of ranks, then blocks of equally many ranks, as a
  /// counter carries digits: the balanced tree without recursion.
  [[nodiscard]] Value const* reduce(Reduction reduction, Value const* const* in, int ranks, Index at, Index n,
                                    Value* out) {
    if constexpr (std::is_same_v<Accumulator, Value>) result_ = out ? out : memory_[0];
    int level = 0;
    for (int r = 0; r < ranks; r += 2) {
      auto* const left = block(level++);
      load(in[r] + at, n, left);
      if (r + 1 < ranks)
        merge<Accumulator>(reduction, left, as_accumulator(in[r + 1] + at, n, block(level)), n);
      else if (reduction == Reduction::logical_or || reduction == Reduction::logical_and)
        merge<Accumulator>(reduction, left, as_accumulator(in[r] + at, n, block(level)),
                           n);  // combined with itself: becomes 0 or 1
      for (auto pairs = r / 2 + 1; pairs % 2 == 0; pairs /= 2) merge_last(reduction, level, n);
    }
    while (level > 1) merge_last(reduction, level, n);
    if constexpr (!std::is_integral_v<Accumulator>)
      if (reduction == Reduction::average) divide(block(0), n, static_cast<Accumulator>(ranks));
    if constexpr (std::is_same_v<Accumulator, Value>) {
      return block(0);
    } else {
      narrow(block(0), n, narrow_);
      return narrow_;
    }
  }

 private:
  [[nodiscard]] Accumulator* block(int level) noexcept { return level == 0 ? result_ : memory_[level]; }
  void merge_last(Reduction reduction, int& level, Index n) {
    --level;
    merge<Accumulator>(reduction, block(level - 1), block(level), n);
  }
  static void load(Value const* from, Index n, Accumulator* to) {
    if constexpr (std::is_same_v<Accumulator, Value>)
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(Value));
    else
      widen(from, n, to);
  }
  /// Returns the elements, converted to float in `spare` if they are narrow.
  static Accumulator const* as_accumulator(Value const* from, Index n, [[maybe_unused]] Accumulator* spare) {
    if constexpr (std::is_same_v<Accumulator, Value>) {
      return from;
    } else {
      widen(from, n, spare);
      return spare;
    }
  }

  alignas(64) Accumulator memory_[max_levels][reduce_block];
  alignas(64) Value narrow_[std::is_same_v<Accumulator, Value> ? 1 : reduce_block];
  Accumulator* result_ = memory_[0];
};

/// Reduces element i of all ranks and writes it to every out[k][i], for begin <= i < end. An output may be an input:
/// each element is read on all ranks before it is written on any.
template <class Value>
void reduce_blocks(Reduction reduction, Value const* const* in, int ranks, Value* const* out, int outputs, Index begin,
                   Index end) {
  PendingBlocks<Value> blocks;
  bool const is_separate = outputs == 1 && std::find(in, in + ranks, out[0]) == in + ranks;
  for (auto at = begin; at < end; at += reduce_block) {
    auto const n = std::min(reduce_block, end - at);
    auto const* const result = blocks.reduce(reduction, in, ranks, at, n, is_separate ? out[0] + at : nullptr);
    for (int k = 0; k < outputs; ++k)
      if (out[k] + at != result) std::memcpy(out[k] + at, result, static_cast<std::size_t>(n) * sizeof(Value));
  }
}

inline constexpr int all_ranks = -1;

/// Sums over all ranks r in one pass, through registers: writes data[own][i], or all ranks' data[r][i] if `own` is
/// all_ranks. Returns false unless there are 2 or 4 ranks. The ranks' memory must not overlap.
template <int own, class Value>
bool sum_in_place(Value* const* data, int ranks, Index begin, Index end) {
  using Accumulator = Accumulate<Value>;
  if (ranks == 2)
    with_best_instructions([a = data[0], b = data[1], begin, end] {
      for (auto i = begin; i < end; ++i) {
        auto const sum = bits_of(static_cast<Value>(Accumulator{a[i]} + Accumulator{b[i]}));
        if constexpr (own == 0 || own == all_ranks) bits_of(a[i]) = sum;
        if constexpr (own == 1 || own == all_ranks) bits_of(b[i]) = sum;
      }
    });
  if (ranks == 4)
    with_best_instructions([a = data[0], b = data[1], c = data[2], d = data[3], begin, end] {
      for (auto i = begin; i < end; ++i) {
        auto const sum = bits_of(
            static_cast<Value>((Accumulator{a[i]} + Accumulator{b[i]}) + (Accumulator{c[i]} + Accumulator{d[i]})));
        if constexpr (own == 0 || own == all_ranks) bits_of(a[i]) = sum;
        if constexpr (own == 1 || own == all_ranks) bits_of(b[i]) = sum;
        if constexpr (own == 2 || own == all_ranks) bits_of(c[i]) = sum;
        if constexpr (own == 3 || own == all_ranks) bits_of(d[i]) = sum;
      }
    });
  return ranks == 2 || ranks == 4;
}

/// Sums as sum_in_place, but writes the sum only to the rank whose memory is `own`.
template <class Value>
bool sum_into_own(Value* const* data, int ranks, Value const* own, Index begin, Index end) {
  if (own == data[0]) return sum_in_place<0>(data, ranks, begin, end);
  if (ranks > 1 && own == data[1]) return sum_in_place<1>(data, ranks, begin, end);
  if (ranks > 2 && own == data[2]) return sum_in_place<2>(data, ranks, begin, end);
  if (ranks > 3 && own == data[3]) return sum_in_place<3>(data, ranks, begin, end);
  return false;
}

/// Writes the reduction over ranks of in[rank][i] to every out[k][i], for begin <= i < end.
template <class Value>
void reduce_range(Reduction reduction, Value const* const* in, int ranks, Value* const* out, int outputs, Index begin,
                  Index end) {
  if constexpr (std::is_same_v<Accumulate<Value>, float>) {  // the element types of gradients
    if (reduction == Reduction::sum && outputs == ranks && std::equal(in, in + ranks, out) &&
        sum_in_place<all_ranks>(out, ranks, begin, end))
      return;
    if (reduction == Reduction::sum && outputs == 1 &&
        sum_into_own(const_cast<Value* const*>(in), ranks, out[0], begin, end))
      return;
  }
  reduce_blocks(reduction, in, ranks, out, outputs, begin, end);
}

/// Overload for element types that are known only at run time.
void reduce_range(Reduction reduction, ElementType type, void const* const* in, int ranks, void* const* out,
                  int outputs, Index begin, Index end);

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/detail/tree_reduce.ipp>
#endif
