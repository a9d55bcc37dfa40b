// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <sys/eventfd.h>

#include <memory>
#include <optional>
#include <thread>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Receives this process's signals on a thread of its own with OnSignal::request_stop; else does nothing.
class StopWatch {
 public:
  explicit StopWatch(OnSignal on_signal);
  StopWatch(StopWatch const&) = delete;
  StopWatch& operator=(StopWatch const&) = delete;
  ~StopWatch();

  /// Returns the stop request for the worlds of this process's ranks; null with OnSignal::end.
  [[nodiscard]] std::shared_ptr<StopRequest const> request() const noexcept { return request_; }

 private:
  void run();

  std::shared_ptr<StopRequest> request_;
  std::optional<SignalWatch> signals_;
  FileDescriptor stop_;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/stop_watch.ipp>
#endif
