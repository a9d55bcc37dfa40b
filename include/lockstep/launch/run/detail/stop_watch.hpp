// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <sys/eventfd.h>

#include <memory>
#include <optional>
#include <thread>

#include <lockstep/core/error.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/file_descriptor.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Receives this process's signals on a thread of its own with OnSignal::request_stop; else does nothing.
class StopWatch {
 public:
  explicit StopWatch(OnSignal on_signal) {
    if (on_signal == OnSignal::end) return;
    request_ = std::make_shared<StopRequest>();
    signals_.emplace(on_signal);
    stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch signals (eventfd)");
    thread_ = start_thread("launch", "the thread that receives signals", [this] { run(); });
  }
  StopWatch(StopWatch const&) = delete;
  StopWatch& operator=(StopWatch const&) = delete;
  ~StopWatch() {
    if (!thread_.joinable()) return;
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  /// Returns the stop request for the worlds of this process's ranks; null with OnSignal::end.
  [[nodiscard]] std::shared_ptr<StopRequest const> request() const noexcept { return request_; }

 private:
  void run() {
    for (;;) {
      pollfd polled[]{{stop_.get(), POLLIN, 0}, {signals_->descriptor(), POLLIN, 0}};
      ::poll(polled, 2, -1);
      if (polled[0].revents != 0) return;
      for (int signal = signals_->next(); signal != 0; signal = signals_->next())
        if (!request_->handle(signal)) signals_->apply_default_effect(signal);
    }
  }

  std::shared_ptr<StopRequest> request_;
  std::optional<SignalWatch> signals_;
  FileDescriptor stop_;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail
