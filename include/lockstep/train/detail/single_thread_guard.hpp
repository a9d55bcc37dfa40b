// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <string>
#include <thread>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Guard of an object that one thread at a time may use: stores the thread that is in a call, if any. Moves with the
/// object.
class SingleThreadGuard {
 public:
  /// A call, during which calls of other threads are refused. Nested calls of one thread are allowed.
  class [[nodiscard]] Call {
   public:
    /// @throws ConfigError while another thread is in a call; the message names `who` and the `remedy`
    Call(SingleThreadGuard& one, char const* who, char const* remedy) : guard_(one.guard_) {
      auto const caller = std::this_thread::get_id();
      std::thread::id user;
      outermost_ = guard_.compare_exchange_strong(user, caller, std::memory_order_acquire, std::memory_order_relaxed);
      if (!outermost_ && user != caller)
        throw ConfigError(std::string(who) + ": two threads use it at once; " + remedy);
    }
    ~Call() {
      if (outermost_) guard_.store(std::thread::id(), std::memory_order_release);
    }
    Call(Call const&) = delete;
    Call& operator=(Call const&) = delete;

   private:
    std::atomic_ref<std::thread::id> guard_;
    bool outermost_;
  };

 private:
  std::thread::id guard_;
};

}}}  // namespace lockstep::train::detail
