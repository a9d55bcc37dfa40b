// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

/// Receives SIGINT and SIGTERM, with OnSignal::ask SIGUSR1 and SIGHUP too, through a file descriptor for as long as it
/// lives, instead of their usual effect on this process; none of them that is ignored, as nohup and a shell's & have
/// it. By handlers, whichever thread the system chooses: a mask would have to be that of every thread, and be inherited
/// by the programs that this one starts. Of two watches the later one receives, and ends first.
class [[nodiscard]] SignalWatch {
 public:
  explicit SignalWatch(OnSignal on_signal = OnSignal::end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      throw ConfigError(std::string("launch: the system refused to watch signals (pipe2): ") + std::strerror(errno));
    heard_ = File(ends[0]), says_ = File(ends[1]);
    earlier_owner_ = owner_.exchange(::getpid());
    earlier_ = says_to_.exchange(says_.get());
    struct sigaction hears {};
    hears.sa_handler = hear;
    hears.sa_flags = SA_RESTART;
    sigset_t watched;
    ::sigemptyset(&watched);
    for (auto& [signal, taken, before] : watched_) {
      bool const asks = signal == SIGUSR1 || signal == SIGHUP;
      taken = (!asks || on_signal == OnSignal::ask) && ::sigaction(signal, nullptr, &before) == 0 &&
              before.sa_handler != SIG_IGN && ::sigaction(signal, &hears, nullptr) == 0;
      if (taken) ::sigaddset(&watched, signal);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &watched, &mask_before_);
  }
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;
  ~SignalWatch() {
    for (auto const& each : watched_)
      if (each.taken) ::sigaction(each.signal, &each.before, nullptr);
    says_to_ = earlier_;
    auto const owner = owner_.exchange(earlier_owner_);
    while (saying_ > 0 && owner == ::getpid()) std::this_thread::yield();  // before their descriptor is closed
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  [[nodiscard]] int descriptor() const noexcept { return heard_.get(); }
  /// The signals that were blocked before the watch, for processes to be started.
  [[nodiscard]] sigset_t const& mask_before() const noexcept { return mask_before_; }
  /// The next signal that came, or 0.
  [[nodiscard]] int next() const noexcept {
    unsigned char signal = 0;
    return ::read(heard_.get(), &signal, 1) == 1 ? signal : 0;
  }

  /// The signal has its usual effect on this process after all.
  void meet(int signal) const noexcept {
    for (auto const& each : watched_)
      if (each.taken && each.signal == signal) ::sigaction(signal, &each.before, nullptr);
    ::kill(::getpid(), signal);
  }

 private:
  struct Watched {
    int signal;
    bool taken = false;
    struct sigaction before {};
  };

  static void hear(int signal) noexcept {
    auto const before = errno;
    if (::getpid() != owner_) {  // a fork, which shares the pipe
      ::signal(signal, SIG_DFL);
      ::raise(signal);
      return;
    }
    ++saying_;
    auto const number = static_cast<unsigned char>(signal);
    static_cast<void>(::write(says_to_, &number, 1) == 1);
    --saying_;
    errno = before;
  }

  // What a handler can see.
  static inline std::atomic<int> says_to_ = -1, saying_ = 0;
  static inline std::atomic<pid_t> owner_ = 0;

  std::array<Watched, 4> watched_{{{SIGINT}, {SIGTERM}, {SIGUSR1}, {SIGHUP}}};
  sigset_t mask_before_{};
  File heard_, says_;
  int earlier_ = -1;  // where an earlier watch is told
  pid_t earlier_owner_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
