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
#include <lockstep/launch/detail/file_descriptor.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Receives SIGINT and SIGTERM, and with OnSignal::request_stop SIGUSR1 and SIGHUP, through a file descriptor instead
/// of their default effect. Leaves ignored signals ignored, for example under nohup. Uses handlers, since a signal mask
/// would have to be set in every thread, and programs that this one starts would inherit it. If two watches exist, the
/// later one receives signals and must be destroyed first.
class [[nodiscard]] SignalWatch {
 public:
  explicit SignalWatch(OnSignal on_signal = OnSignal::end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      throw ConfigError(std::string("launch: the system refused to watch signals (pipe2): ") + std::strerror(errno));
    read_end_ = FileDescriptor(ends[0]);
    write_end_ = FileDescriptor(ends[1]);
    earlier_owner_ = owner_.exchange(::getpid());
    earlier_ = handler_pipe_.exchange(write_end_.get());
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigset_t watched;
    ::sigemptyset(&watched);
    for (auto& [signal, installed, before] : watched_) {
      bool const only_requests_stop = signal == SIGUSR1 || signal == SIGHUP;
      installed = (!only_requests_stop || on_signal == OnSignal::request_stop) &&
                  ::sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN &&
                  ::sigaction(signal, &action, nullptr) == 0;
      if (installed) ::sigaddset(&watched, signal);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &watched, &mask_before_);
  }
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;
  ~SignalWatch() {
    for (auto const& each : watched_)
      if (each.installed) ::sigaction(each.signal, &each.before, nullptr);
    handler_pipe_ = earlier_;
    auto const owner = owner_.exchange(earlier_owner_);
    while (running_handlers_ > 0 && owner == ::getpid())
      std::this_thread::yield();  // before their descriptor is closed
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  [[nodiscard]] int descriptor() const noexcept { return read_end_.get(); }
  /// Returns the mask of blocked signals before the watch, for processes to start.
  [[nodiscard]] sigset_t const& mask_before() const noexcept { return mask_before_; }
  /// Returns the next received signal, or 0.
  [[nodiscard]] int next() const noexcept {
    unsigned char signal = 0;
    return ::read(read_end_.get(), &signal, 1) == 1 ? signal : 0;
  }

  /// Applies the signal's usual effect to this process.
  void apply_default_effect(int signal) const noexcept {
    for (auto const& each : watched_)
      if (each.installed && each.signal == signal) ::sigaction(signal, &each.before, nullptr);
    ::kill(::getpid(), signal);
  }

 private:
  struct Watched {
    int signal;
    bool installed = false;
    struct sigaction before {};
  };

  static void handle(int signal) noexcept {
    auto const before = errno;
    if (::getpid() != owner_) {  // a fork, which shares the pipe
      ::signal(signal, SIG_DFL);
      ::raise(signal);
      return;
    }
    ++running_handlers_;
    auto const number = static_cast<unsigned char>(signal);
    static_cast<void>(::write(handler_pipe_, &number, 1) == 1);
    --running_handlers_;
    errno = before;
  }

  // State for the handler.
  static inline std::atomic<int> handler_pipe_ = -1, running_handlers_ = 0;
  static inline std::atomic<pid_t> owner_ = 0;

  std::array<Watched, 4> watched_{{{SIGINT}, {SIGTERM}, {SIGUSR1}, {SIGHUP}}};
  sigset_t mask_before_{};
  FileDescriptor read_end_, write_end_;
  int earlier_ = -1;  // descriptor of an earlier watch
  pid_t earlier_owner_ = 0;
};

}}}  // namespace lockstep::launch::detail
