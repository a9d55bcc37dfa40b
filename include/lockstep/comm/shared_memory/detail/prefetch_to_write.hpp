// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Prefetches a cache line in order to write it soon, and invalidates it in the caches of other cores. Any address is
/// valid.
[[gnu::always_inline]] inline void prefetch_to_write(void const* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<char const*>(at)));  // the builtin needs a target processor
#else
  __builtin_prefetch(at, 1);
#endif
}

}}}  // namespace lockstep::comm::detail
