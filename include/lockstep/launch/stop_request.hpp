// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <atomic>
#include <stop_token>

#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Request by a signal that the ranks of a process stop and save their work. Schedulers send SIGTERM, or another signal
/// (Slurm: --signal=USR1@120), some time before they kill a process. A terminal that closes sends SIGHUP. Thread-safe.
class StopRequest {
 public:
  /// Returns a token that is stopped once a signal has requested it.
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  /// Returns the signal that requested the stop, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_.load(std::memory_order_acquire); }

  /// Handles a signal; call it from one thread. The first SIGTERM, SIGHUP or SIGUSR1 requests the stop. A launcher and
  /// its scheduler may both send a signal, so further signals within a second count as the same request.
  /// @returns false if the process must end at once: for any other signal, or a signal after the first request
  [[nodiscard]] bool handle(int signal) noexcept {
    if (!is_stop_signal(signal)) return false;
    if (this->signal() != 0) return Clock::nanoseconds() < until_;
    until_ = deadline_in(same_request_seconds);
    signal_.store(signal, std::memory_order_release);
    source_.request_stop();
    return true;
  }

  /// Returns whether a rank's exit code means that it stopped on request: 128 + the signal.
  [[nodiscard]] static constexpr bool is_stop_exit_code(int code) noexcept { return is_stop_signal(code - 128); }

 private:
  [[nodiscard]] static constexpr bool is_stop_signal(int signal) noexcept {
    return signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1;
  }
  static constexpr double same_request_seconds = 1;

  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  Deadline until_ = 0;
};

}}}  // namespace lockstep::launch
