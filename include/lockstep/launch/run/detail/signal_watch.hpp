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
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Receives SIGINT and SIGTERM, and with OnSignal::request_stop all of StopRequest::stop_signals, through a file
/// descriptor instead of their default effect. Leaves ignored signals ignored, for example under nohup, and a handler
/// of the program for SIGUSR2 or SIGXCPU in place. Uses handlers, since a signal mask would have to be set in every
/// thread, and programs that this one starts would inherit it. If two watches exist, the later one receives signals and
/// must be destroyed first.
class [[nodiscard]] SignalWatch {
 public:
  explicit SignalWatch(OnSignal on_signal = OnSignal::end);
  SignalWatch(SignalWatch const&) = delete;
  SignalWatch& operator=(SignalWatch const&) = delete;
  ~SignalWatch();

  [[nodiscard]] int descriptor() const noexcept { return read_end_.get(); }
  /// Returns the mask of blocked signals before the watch, for processes to start.
  [[nodiscard]] sigset_t const& mask_before() const noexcept { return mask_before_; }
  /// Returns the next received signal, or 0.
  [[nodiscard]] int next() const noexcept;

  /// Applies the signal's usual effect to this process.
  void apply_default_effect(int signal) const noexcept;

 private:
  struct Watched {
    int signal;
    bool installed = false;
    struct sigaction before {};
  };

  static void handle(int signal) noexcept;

  // State for the handler.
  static inline std::atomic<int> handler_pipe_ = -1, running_handlers_ = 0;
  static inline std::atomic<pid_t> owner_ = 0;

  std::array<Watched, 6> watched_{{{SIGINT}, {SIGTERM}, {SIGUSR1}, {SIGHUP}, {SIGUSR2}, {SIGXCPU}}};
  sigset_t mask_before_{};
  FileDescriptor read_end_, write_end_;
  int earlier_ = -1;  // descriptor of an earlier watch
  pid_t earlier_owner_ = 0;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/signal_watch.ipp>
#endif
