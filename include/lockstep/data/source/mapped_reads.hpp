// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <cerrno>
#include <mutex>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/data/source/detail/file_mapping.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// The leave to map files: while it lives, SIGBUS is handled, so that a mapped file that another process shortens is a
/// DataError at the next read and not the end of this process. A fault of anybody else's goes to who handled the signal
/// before, or ends the process. To be made once, in `main`, before the arrays and to go after them:
/// `MappedReads const mapped; auto clips = open_npy("clips.npy").mapped(mapped);`
class [[nodiscard]] MappedReads {
 public:
  /// @throws Error when the system refuses
  MappedReads() {
    std::lock_guard const lock(mutex_);
    if (lives_ == 0) {
      struct ::sigaction action {};
      action.sa_sigaction = detail::survive_shortened_file;
      action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
      ::sigemptyset(&action.sa_mask);
      if (::sigaction(SIGBUS, &action, &detail::sigbus_before) != 0)
        throw Error("MappedReads: SIGBUS cannot be handled: " + detail::system_message(errno));
    }
    ++lives_;
  }
  /// What was done about SIGBUS before the first is done again after the last.
  ~MappedReads() {
    std::lock_guard const lock(mutex_);
    if (--lives_ == 0) ::sigaction(SIGBUS, &detail::sigbus_before, nullptr);
  }
  MappedReads(MappedReads const&) = delete;
  MappedReads& operator=(MappedReads const&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int lives_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
