// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/core/index.hpp>

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

/// Sum over i of x[i], by lanes, then over the lanes from first to last.
template <class T>
[[nodiscard, gnu::always_inline]] inline T sum(T const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> sums{}, next;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    __builtin_memcpy(&next, x + i, sizeof next);
    sums += next;
  }
  T total = 0;
  for (Index lane = 0; lane < lanes; ++lane) total += sums[lane];
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
  T total = 0;
  for (Index lane = 0; lane < lanes; ++lane) total += sums[lane];
  for (; i < count; ++i) total += x[i] * y[i];
  return total;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
