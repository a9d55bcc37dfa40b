// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/start_thread.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE void join_threads(std::vector<std::thread>& threads, ::pid_t starter) noexcept {
  if (::getpid() != starter) {
    // None of them can be joined or destroyed.
    static_cast<void>(new (std::nothrow) std::vector<std::thread>(std::move(threads)));
    return;
  }
  for (auto& thread : threads) thread.join();
}

}}  // namespace lockstep
