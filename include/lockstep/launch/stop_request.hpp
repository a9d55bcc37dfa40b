// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <atomic>
#include <stop_token>

#include <lockstep/core/wait.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// What signals ask of the ranks of a process that can end by themselves, with their work saved: to do so. Schedulers
/// send SIGTERM, or what they are told to (Slurm: --signal=USR1@120), some time before they kill; a terminal that is
/// closed sends SIGHUP. Thread-safe.
class StopRequest {
 public:
  /// Requested once a signal has asked.
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  /// The signal that asked; 0 before.
  [[nodiscard]] int signal() const noexcept { return signal_.load(std::memory_order_acquire); }

  /// For who receives signals, one thread. The first SIGTERM, SIGHUP or SIGUSR1 asks; a launcher and its scheduler may
  /// both send one, so what follows at once is the same request.
  /// @returns false when the process is to end at once: for any other signal, and when it was asked before
  [[nodiscard]] bool take(int signal) noexcept {
    if (!asks(signal)) return false;
    if (this->signal() != 0) return Clock::nanoseconds() < until_;
    until_ = deadline_in(same_request_seconds);
    signal_.store(signal, std::memory_order_release);
    source_.request_stop();
    return true;
  }

  /// Whether a rank that returned `code` says that it has ended because it was asked: 128 + the signal.
  [[nodiscard]] static constexpr bool is_answer(int code) noexcept { return asks(code - 128); }

 private:
  [[nodiscard]] static constexpr bool asks(int signal) noexcept {
    return signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1;
  }
  static constexpr double same_request_seconds = 1;

  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  Deadline until_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
