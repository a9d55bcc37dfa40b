// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/stop_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE StopWatch::StopWatch(OnSignal on_signal) {
  if (on_signal == OnSignal::end) return;
  request_ = std::make_shared<StopRequest>();
  signals_.emplace(on_signal);
  stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch signals (eventfd)");
  thread_ = start_thread("launch", "the thread that receives signals", [this] { run(); });
}

LOCKSTEP_INLINE StopWatch::~StopWatch() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

LOCKSTEP_INLINE void StopWatch::run() {
  for (;;) {
    pollfd polled[]{{stop_.get(), POLLIN, 0}, {signals_->descriptor(), POLLIN, 0}};
    ::poll(polled, 2, -1);
    if (polled[0].revents != 0) return;
    for (int signal = signals_->next(); signal != 0; signal = signals_->next())
      if (!request_->handle(signal)) signals_->apply_default_effect(signal);
  }
}

}}}  // namespace lockstep::launch::detail
