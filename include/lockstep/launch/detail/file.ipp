// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

LOCKSTEP_INLINE File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LOCKSTEP_INLINE int milliseconds_until(Deadline deadline) noexcept {
  if (deadline == no_deadline) return -1;
  auto const left = (deadline - Clock::nanoseconds() + 999'999) / 1'000'000;
  return left < 0 ? 0 : left > 1'000'000 ? 1'000'000 : static_cast<int>(left);
}

LOCKSTEP_INLINE bool readable(int file, Deadline deadline) noexcept {
  for (;;) {
    pollfd polled{file, POLLIN, 0};
    if (::poll(&polled, 1, milliseconds_until(deadline)) > 0) return true;
    if (Clock::nanoseconds() >= deadline) return false;  // else a signal came, or the deadline is far away
  }
}

}}}  // namespace lockstep::launch::detail
