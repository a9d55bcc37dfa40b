// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/single_thread_guard.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE SingleThreadGuard::Call::Call(SingleThreadGuard& one, char const* who, char const* remedy)
    : guard_(one.guard_) {
  auto const caller = std::this_thread::get_id();
  std::thread::id user;
  outermost_ = guard_.compare_exchange_strong(user, caller, std::memory_order_acquire, std::memory_order_relaxed);
  if (!outermost_ && user != caller) throw ConfigError(std::string(who) + ": two threads use it at once; " + remedy);
}

}}}  // namespace lockstep::train::detail
