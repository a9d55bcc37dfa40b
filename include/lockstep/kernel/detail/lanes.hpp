// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_shufflevector)
#define LOCKSTEP_HAS_SHUFFLE
#endif
#endif

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// `bytes` bytes of T in one value. A reduction has 64 bytes of lanes, in as many values as the vectors make of them:
/// it has the same bits then, whatever vectors the processor has. Compilers do not vectorise one over scalars, because
/// that would change its order.
template <class T, std::size_t bytes = 64>
struct LanesOf {
  typedef T type __attribute__((vector_size(bytes)));
  static constexpr Index count = bytes / static_cast<Index>(sizeof(T));
};
template <class T, std::size_t bytes>
using Lanes = typename LanesOf<T, bytes>::type;

// A vector is an argument by reference and never a result: without the instructions for its width, either would be
// passed in another way than with them.
template <class V, class T>
[[gnu::always_inline]] inline void load(V& to, T const* from) noexcept {
  __builtin_memcpy(&to, from, sizeof to);
}
template <class V, class T>
[[gnu::always_inline]] inline void store(T* to, V const& from) noexcept {
  __builtin_memcpy(to, &from, sizeof from);
}

// Not V{}: nvcc falls over that in a template of a lambda.
template <class V>
[[gnu::always_inline]] inline void clear(V& to) noexcept {
  __builtin_memset(&to, 0, sizeof to);
}

enum class Fold { sum, largest };

template <Fold fold, class V>
[[gnu::always_inline]] inline void fold_into(V& to, V const& x) noexcept {
  if constexpr (fold == Fold::sum) {
    to += x;
  } else {
    to = x > to ? x : to;
  }
}

/// The lower and the upper half of `lanes`. Named by lanes where the compiler can: told by bytes, it keeps a sum in
/// memory for as long as it is added to, in builds whose own vectors are that wide.
template <class Vector, class Half, int... lane>
[[gnu::always_inline]] inline void halve(Vector const& lanes, Half& low, Half& high,
                                         std::integer_sequence<int, lane...>) noexcept {
#if defined(LOCKSTEP_HAS_SHUFFLE)
  low = __builtin_shufflevector(lanes, lanes, lane...);
  high = __builtin_shufflevector(lanes, lanes, (static_cast<int>(sizeof...(lane)) + lane)...);
#else
  __builtin_memcpy(&low, &lanes, sizeof low);
  __builtin_memcpy(&high, reinterpret_cast<char const*>(&lanes) + sizeof low, sizeof high);
#endif
}

/// `bytes` bytes of lanes become one, by halves. In registers: a row's sum is waited for, and a detour through memory
/// is most of it.
template <class T, Fold fold, std::size_t bytes, class Vector>
[[nodiscard, gnu::always_inline]] inline T folded(Vector const& lanes) noexcept {
  if constexpr (bytes == sizeof(T)) {
    return lanes[0];
  } else {
    typedef T Half __attribute__((vector_size(bytes / 2)));
    Half low, high;
    halve(lanes, low, high, std::make_integer_sequence<int, static_cast<int>(bytes / sizeof(T) / 2)>{});
    fold_into<fold>(low, high);
    return folded<T, fold, bytes / 2>(low);
  }
}

/// The 64 bytes of lanes become one, by halves: lane i takes lane i + 8, then i + 4, and so on.
template <class T, Fold fold, std::size_t values, class Vector>
[[nodiscard, gnu::always_inline]] inline T folded(Vector (&lanes)[values]) noexcept {
#pragma GCC unroll 2
  for (std::size_t half = values / 2; half > 0; half /= 2)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < half; ++v) fold_into<fold>(lanes[v], lanes[v + half]);
  return folded<T, fold, sizeof(Vector)>(lanes[0]);
}

/// Sum over i of x[i], by lanes, then over the lanes.
template <std::size_t bytes, class T>
[[nodiscard, gnu::always_inline]] inline T sum(Vectors<bytes>, T const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count, each = LanesOf<T, bytes>::count;
  Lanes<T, bytes> sums[64 / bytes]{}, next;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma GCC unroll 4
    for (Index p = 0; p < lanes; p += each) {
      load(next, x + i + p);
      sums[p / each] += next;
    }
  }
  T total = folded<T, Fold::sum>(sums);
  for (; i < count; ++i) total += x[i];
  return total;
}

/// The largest x[i]; minus infinity of none. A nan may or may not be passed over.
template <std::size_t bytes, class T>
[[nodiscard, gnu::always_inline]] inline T largest(Vectors<bytes>, T const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count, each = LanesOf<T, bytes>::count;
  T most = -std::numeric_limits<T>::infinity();
  Index i = 0;
  if (count >= lanes) {
    Lanes<T, bytes> mosts[64 / bytes], next;
    __builtin_memcpy(mosts, x, sizeof mosts);
    for (i = lanes; i + lanes <= count; i += lanes) {
#pragma GCC unroll 4
      for (Index p = 0; p < lanes; p += each) {
        load(next, x + i + p);
        fold_into<Fold::largest>(mosts[p / each], next);
      }
    }
    most = folded<T, Fold::largest>(mosts);
  }
  for (; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

/// Sum over i of x[i] * y[i], in the order of `sum`.
template <std::size_t bytes, class T>
[[nodiscard, gnu::always_inline]] inline T dot(Vectors<bytes>, T const* x, T const* y, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count, each = LanesOf<T, bytes>::count;
  Lanes<T, bytes> sums[64 / bytes]{}, a, b;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma GCC unroll 4
    for (Index p = 0; p < lanes; p += each) {
      load(a, x + i + p);
      load(b, y + i + p);
      sums[p / each] += a * b;
    }
  }
  T total = folded<T, Fold::sum>(sums);
  for (; i < count; ++i) total += x[i] * y[i];
  return total;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
