// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/text/detail/cache_lock.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE CacheLock::CacheLock(std::string path, Progress* progress) : path_(std::move(path)) {
  if (progress) progress->begin("waiting for another process that prepares the texts", 0);
  for (;;) {
    file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
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

}}}  // namespace lockstep::data::detail
