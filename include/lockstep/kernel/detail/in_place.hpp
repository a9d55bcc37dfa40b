// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Calls f(from, to) for a loop over elements whose source and target may be the same memory, but do not overlap
/// otherwise. Call it inside with_best_instructions.
template <class Scalar, class Function>
[[gnu::always_inline]] inline void maybe_in_place(Scalar const* from, Scalar* to, Function const& f) noexcept {
#if defined(__clang__)  // treats equal pointers as overlapping, unless it sees that they are one
  if (from == to) return f(static_cast<Scalar const*>(to), to);
#endif
  f(from, to);
}

}}}  // namespace lockstep::kernel::detail
