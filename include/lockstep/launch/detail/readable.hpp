// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>

#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the time left for poll: at least 0, rounded up, so that the deadline has passed when it returns 0; -1 for no
/// deadline.
[[nodiscard]] inline int milliseconds_until(Deadline deadline) noexcept {
  if (deadline == no_deadline) return -1;
  auto const left = (deadline - Clock::nanoseconds() + 999'999) / 1'000'000;
  return left < 0 ? 0 : left > 1'000'000 ? 1'000'000 : static_cast<int>(left);
}

/// Waits for an event of poll, an error or the end. Returns false at the deadline.
[[nodiscard]] inline bool await_event(int file, short event, Deadline deadline) noexcept {
  for (;;) {
    pollfd polled{file, event, 0};
    if (::poll(&polled, 1, milliseconds_until(deadline)) > 0) return true;
    if (Clock::nanoseconds() >= deadline) return false;  // else a signal came, or the deadline is far away
  }
}
/// Waits until a read returns at once, with data, an error or the end. Returns false at the deadline.
[[nodiscard]] inline bool readable(int file, Deadline deadline) noexcept { return await_event(file, POLLIN, deadline); }
/// Waits until a write takes bytes or fails. Returns false at the deadline.
[[nodiscard]] inline bool writable(int file, Deadline deadline) noexcept {
  return await_event(file, POLLOUT, deadline);
}

}}}  // namespace lockstep::launch::detail
