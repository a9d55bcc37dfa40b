// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// f(from, to) for a loop over elements whose source and target may be the same memory, but do not overlap otherwise.
/// To be called inside with_best_instructions.
template <class T, class F>
[[gnu::always_inline]] inline void maybe_in_place(T const* from, T* to, F const& f) noexcept {
#if defined(__clang__)  // takes equal pointers for ones that overlap, unless it sees that they are one
  if (from == to) return f(static_cast<T const*>(to), to);
#endif
  f(from, to);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
