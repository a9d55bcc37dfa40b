// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>

#include <lockstep/core/index.hpp>

#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_shufflevector)
#define LOCKSTEP_HAS_SHUFFLE
#endif
#endif

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// 64 bytes of T in one value. A reduction over a fixed number of lanes has the same bits whatever vectors the
/// processor has; compilers do not vectorise one over scalars, because that would change its order.
template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(64)));
  static constexpr Index count = 64 / static_cast<Index>(sizeof(T));
};
template <class T>
using Lanes = typename LanesOf<T>::type;

enum class Fold { sum, largest };

/// `bytes` bytes of lanes become one, by halves. In registers: a row's sum is waited for, and a detour through memory
/// is most of it.
template <class T, Fold fold, std::size_t bytes, class Vector>
[[nodiscard, gnu::always_inline]] inline T folded(Vector const& lanes) noexcept {
  if constexpr (bytes == sizeof(T)) {
    return lanes[0];
  } else {
    typedef T Half __attribute__((vector_size(bytes / 2)));
    Half low, high;
    __builtin_memcpy(&low, &lanes, bytes / 2);
    __builtin_memcpy(&high, reinterpret_cast<char const*>(&lanes) + bytes / 2, bytes / 2);
    if constexpr (fold == Fold::sum) {
      return folded<T, fold, bytes / 2>(low + high);
    } else {
      return folded<T, fold, bytes / 2>(high > low ? high : low);
    }
  }
}

/// The sum of the lanes, by halves: lane i takes lane i + 8, then i + 4, and so on.
template <class T>
[[nodiscard, gnu::always_inline]] inline T sum_of_lanes(Lanes<T> const& lanes) noexcept {
  return folded<T, Fold::sum, 64>(lanes);
}

/// Sum over i of x[i], by lanes, then over the lanes.
template <class T>
[[nodiscard, gnu::always_inline]] inline T sum(T const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> sums{}, next;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    __builtin_memcpy(&next, x + i, sizeof next);
    sums += next;
  }
  T total = sum_of_lanes<T>(sums);
  for (; i < count; ++i) total += x[i];
  return total;
}

/// The largest x[i]; minus infinity of none. A nan may or may not be passed over.
template <class T>
[[nodiscard, gnu::always_inline]] inline T largest(T const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  T most = -std::numeric_limits<T>::infinity();
  Index i = 0;
  if (count >= lanes) {
    Lanes<T> mosts, next;
    __builtin_memcpy(&mosts, x, sizeof mosts);
    for (i = lanes; i + lanes <= count; i += lanes) {
      __builtin_memcpy(&next, x + i, sizeof next);
      mosts = next > mosts ? next : mosts;
    }
    most = folded<T, Fold::largest, 64>(mosts);
  }
  for (; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

/// Sum over i of x[i] * y[i], in the order of `sum`.
template <class T>
[[nodiscard, gnu::always_inline]] inline T dot(T const* x, T const* y, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> sums{}, a, b;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    __builtin_memcpy(&a, x + i, sizeof a);
    __builtin_memcpy(&b, y + i, sizeof b);
    sums += a * b;
  }
  T total = sum_of_lanes<T>(sums);
  for (; i < count; ++i) total += x[i] * y[i];
  return total;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
