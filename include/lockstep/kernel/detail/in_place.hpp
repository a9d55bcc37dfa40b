// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Calls f(from, to) for a loop over elements whose source and target may be the same memory, but do not overlap
/// otherwise. Call it inside with_best_instructions.
template <class T, class F>
[[gnu::always_inline]] inline void maybe_in_place(T const* from, T* to, F const& f) noexcept {
#if defined(__clang__)  // treats equal pointers as overlapping, unless it sees that they are one
  if (from == to) return f(static_cast<T const*>(to), to);
#endif
  f(from, to);
}

}}}  // namespace lockstep::kernel::detail
