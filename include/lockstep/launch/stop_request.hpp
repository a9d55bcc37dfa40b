// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stop_token>

#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Request by a signal that the ranks of a process stop and save their work. Schedulers send SIGTERM, or another signal
/// (Slurm: --signal=USR1@120; submitit, LSF and Grid Engine: SIGUSR2; a limit of processor time: SIGXCPU), some time
/// before they kill a process. A terminal that closes sends SIGHUP. Thread-safe.
class StopRequest {
 public:
  /// Signals that request a stop. All of them would end the process otherwise.
  static constexpr std::array stop_signals{SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

  /// Returns a token that is stopped once a signal has requested it.
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  /// Returns the signal that requested the stop, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_.load(std::memory_order_acquire); }

  /// Handles a signal; call it from one thread. The first signal of `stop_signals` requests the stop. A launcher
  /// and its scheduler may both send a signal, so further signals within a second count as the same request.
  /// @returns false if the process must end at once: for any other signal, or a signal after the first request
  [[nodiscard]] bool handle(int signal) noexcept {
    if (!is_stop_signal(signal)) return false;
    bool const repeats = signal == SIGXCPU && this->signal() == SIGXCPU;  // the system sends it each second
    if (this->signal() != 0) return repeats || Clock::nanoseconds() < until_;
    until_ = deadline_in(same_request_seconds);
    signal_.store(signal, std::memory_order_release);
    source_.request_stop();
    return true;
  }

  /// Returns whether a rank's exit code means that it stopped on request: 128 + the signal.
  [[nodiscard]] static constexpr bool is_stop_exit_code(int code) noexcept { return is_stop_signal(code - 128); }

 private:
  [[nodiscard]] static constexpr bool is_stop_signal(int signal) noexcept {
    return std::find(stop_signals.begin(), stop_signals.end(), signal) != stop_signals.end();
  }
  static constexpr double same_request_seconds = 1;

  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  Deadline until_ = 0;
};

}}}  // namespace lockstep::launch
