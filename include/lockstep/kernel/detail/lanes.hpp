// SPDX-License-Identifier: Apache-2.0
#pragma once
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

/// The sum of the lanes, by halves: lane i takes lane i + 8, then i + 4, and so on.
template <class T>
[[nodiscard, gnu::always_inline]] inline T sum_of_lanes(Lanes<T> const& lanes) noexcept {
  T sums[LanesOf<T>::count];
  __builtin_memcpy(sums, &lanes, sizeof sums);
  for (Index half = LanesOf<T>::count / 2; half > 0; half /= 2)
    for (Index lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
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
    for (Index lane = 0; lane < lanes; ++lane) most = mosts[lane] > most ? mosts[lane] : most;
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
