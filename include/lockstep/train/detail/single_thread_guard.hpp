// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <thread>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Guard of an object that one thread at a time may use: stores the thread that is in a call, if any. Moves with the
/// object.
class SingleThreadGuard {
 public:
  /// A call, during which calls of other threads are refused. Nested calls of one thread are allowed.
  class [[nodiscard]] Call {
   public:
    /// @throws ConfigError while another thread is in a call; the message names `who` and the `remedy`
    Call(SingleThreadGuard& one, char const* who, char const* remedy);
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

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/single_thread_guard.ipp>
#endif
