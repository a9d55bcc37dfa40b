// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// to[i] = of(i) for every i from begin on and before end, or to[i] += that. To be called inside
/// with_best_instructions.
template <class T, class F>
[[gnu::always_inline]] inline void write_each(Index begin, Index end, T* to, Write write, F of) noexcept {
  if (write == Write::overwrite) {
    for (Index i = begin; i < end; ++i) to[i] = of(i);
  } else {
    for (Index i = begin; i < end; ++i) to[i] += of(i);
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
