// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

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

/// Calls f.template operator()<V>(column) for columns that V covers together: 64 bytes of them while there are as many,
/// then one by one. What belongs to columns then stays in registers while rows pass. To be called inside
/// with_best_instructions.
template <class T, class F>
[[gnu::always_inline]] inline void for_column_lanes(Index width, F&& f) noexcept {
  Index c = 0;
  for (; c + LanesOf<T>::count <= width; c += LanesOf<T>::count) f.template operator()<Lanes<T>>(c);
  for (; c < width; ++c) f.template operator()<T>(c);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
