// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

/// Receives SIGINT and SIGTERM, with OnSignal::ask SIGUSR1 and SIGHUP too, through a file descriptor for as long as it
/// lives, instead of their usual effect on this thread; none of them that is ignored, as nohup and a shell's & have it.
class [[nodiscard]] SignalWatch {
 public:
  explicit SignalWatch(OnSignal on_signal = OnSignal::end) {
    sigset_t watched;
    ::sigemptyset(&watched);
    for (int const signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
      struct sigaction now {};
      bool const asks = signal == SIGUSR1 || signal == SIGHUP;
      if (asks && on_signal != OnSignal::ask) continue;
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&watched, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
    file_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (file_ >= 0) return;
    auto const why = errno;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw ConfigError(std::string("launch: the system refused to watch signals (signalfd): ") + std::strerror(why));
  }
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;
  ~SignalWatch() {
    ::close(file_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  [[nodiscard]] int descriptor() const noexcept { return file_; }
  /// The signals that are blocked outside of the watch, for processes to be started.
  [[nodiscard]] sigset_t const& mask_before() const noexcept { return before_; }
  /// The next signal that came, or 0.
  [[nodiscard]] int next() const noexcept {
    ::signalfd_siginfo info{};
    return ::read(file_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

  /// For a thread that a watch has made deaf: the signal has its usual effect on this process after all.
  static void meet(int signal) noexcept {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, signal);
    ::kill(::getpid(), signal);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  }

 private:
  sigset_t before_{};
  int file_ = -1;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
