// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <cerrno>
#include <mutex>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/data/source/detail/file_mapping.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Permission to map files. While it lives, it handles SIGBUS: if another process shortens a mapped file, the next read
/// throws a DataError instead of ending this process. Other SIGBUS faults go to the previous handler, or end the
/// process. Construct it once, in `main`, before the arrays, so that it is destroyed after them: `MappedReads const
/// mapped; auto clips = open_npy("clips.npy").mapped(mapped);`
class [[nodiscard]] MappedReads {
 public:
  /// @throws Error if the system refuses
  MappedReads() {
    std::lock_guard const lock(mutex_);
    if (instances_ == 0) {
      struct ::sigaction action {};
      action.sa_sigaction = detail::handle_sigbus;
      action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
      ::sigemptyset(&action.sa_mask);
      if (::sigaction(SIGBUS, &action, &detail::previous_sigbus_action) != 0)
        throw Error("MappedReads: SIGBUS cannot be handled: " + system_message(errno));
    }
    ++instances_;
  }
  /// Restores the previous SIGBUS handler when the last object is destroyed.
  ~MappedReads() {
    std::lock_guard const lock(mutex_);
    if (--instances_ == 0) ::sigaction(SIGBUS, &detail::previous_sigbus_action, nullptr);
  }
  MappedReads(MappedReads const&) = delete;
  MappedReads& operator=(MappedReads const&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int instances_ = 0;
};

}}}  // namespace lockstep::data
