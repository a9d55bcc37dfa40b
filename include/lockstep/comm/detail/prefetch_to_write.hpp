// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// Asks for a cache line that this core will write soon: other cores are told to give up theirs meanwhile. Any address
/// will do.
[[gnu::always_inline]] inline void prefetch_to_write(void const* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<char const*>(at)));  // the builtin needs a processor to be chosen
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
