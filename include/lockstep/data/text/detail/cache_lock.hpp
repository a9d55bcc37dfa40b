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
  CacheLock(std::string path, Progress* progress) : path_(std::move(path)), file_(-1) {
    if (progress) progress->begin("waiting for another process that prepares the texts", 0);
    for (;;) {
      file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (file_.get() < 0)
        throw DataError(path_ + ": cannot be created: " + system_message(errno) + "; choose another folder");
      while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (progress) progress->add(0);
      }
      // The previous holder has removed the file, perhaps after it was opened here.
      struct ::stat mine {
      }, named{};
      if (::fstat(file_.get(), &mine) == 0 && ::stat(path_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
          mine.st_dev == named.st_dev)
        return;
    }
  }
  ~CacheLock() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  FileDescriptor file_;
};

}}}  // namespace lockstep::data::detail
