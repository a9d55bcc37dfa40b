// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <unistd.h>

#include <utility>

#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Owns a file descriptor, or none (-1).
class [[nodiscard]] File {
 public:
  File() = default;
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File();

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Returns the time left for poll: at least 0, rounded up, so that the deadline has passed when it returns 0; -1 for no
/// deadline.
[[nodiscard]] int milliseconds_until(Deadline deadline) noexcept;

/// Waits until a read returns at once, with data, an error or the end. Returns false at the deadline.
[[nodiscard]] bool readable(int file, Deadline deadline) noexcept;

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/file.ipp>
#endif
