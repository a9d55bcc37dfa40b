// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

#include <cstddef>

namespace lockstep_test {

/// During its lifetime the system refuses new threads, because their stacks would exceed the address space.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&attributes_);
    ::pthread_attr_getstacksize(&attributes_, &before_);
    set(std::size_t{1} << 47);
  }
  ~NoThreads() {
    set(before_);
    ::pthread_attr_destroy(&attributes_);
  }
  NoThreads(NoThreads const&) = delete;
  NoThreads& operator=(NoThreads const&) = delete;

 private:
  void set(std::size_t bytes) {
    ::pthread_attr_setstacksize(&attributes_, bytes);
    ::pthread_setattr_default_np(&attributes_);
  }

  ::pthread_attr_t attributes_{};
  std::size_t before_ = 0;
};

}  // namespace lockstep_test
