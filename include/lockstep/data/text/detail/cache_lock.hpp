// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/progress.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A lock that one process or thread of a host holds at a time. Its name is the path of a file that exists while it is
/// held. The system releases it when a process dies. On a file system without locks, it excludes no one.
class [[nodiscard]] CacheLock {
 public:
  /// Waits for the lock, and shows that it waits. @throws DataError if the file cannot be created
  CacheLock(std::string path, Progress* progress);
  ~CacheLock() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  FileDescriptor file_;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/detail/cache_lock.ipp>
#endif
