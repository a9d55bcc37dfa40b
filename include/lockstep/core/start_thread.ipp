// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

#include <limits>

#include <lockstep/core/start_thread.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

namespace detail {

/// Returns the stack size of the calling thread, or the largest number if the system does not say.
LOCKSTEP_COLD_INLINE std::size_t own_stack_bytes() noexcept {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  if (::gettid() == ::getpid()) {  // the main thread's stack grows up to the limit
    rlimit limit{};
    if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) bytes = limit.rlim_cur;
    return bytes;
  }
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return bytes;
  static_cast<void>(::pthread_attr_getstacksize(&attributes, &bytes));
  static_cast<void>(::pthread_attr_destroy(&attributes));
  return bytes;
}

/// Returns the stack size of threads that are started now, or the largest number if the system does not say.
LOCKSTEP_COLD_INLINE std::size_t new_stack_bytes() noexcept {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return bytes;
  static_cast<void>(::pthread_attr_getstacksize(&attributes, &bytes));
  static_cast<void>(::pthread_attr_destroy(&attributes));
  return bytes;
}

}  // namespace detail

LOCKSTEP_COLD_INLINE void expect_stack(std::string const& who) {
  if (auto const bytes = detail::own_stack_bytes(); bytes < least_stack_bytes)
    throw ConfigError(who + ": the calling thread has a stack of " + std::to_string(bytes >> 10) +
                      " KiB, and computing needs 512 KiB; start the thread with a larger stack " +
                      "(pthread_attr_setstacksize, ulimit -s; with musl, link with -Wl,-z,stack-size=8388608)");
}

LOCKSTEP_COLD_INLINE void expect_stack_of_new_threads(std::string const& who) {
  if (auto const bytes = detail::new_stack_bytes(); bytes < least_stack_bytes)
    throw ConfigError(who + ": new threads have a stack of " + std::to_string(bytes >> 10) +
                      " KiB, and computing needs 512 KiB; raise ulimit -s before the program starts, or, with musl, "
                      "link with -Wl,-z,stack-size=8388608");
}

LOCKSTEP_COLD_INLINE void join_threads(std::vector<std::thread>& threads, ::pid_t starter) noexcept {
  if (::getpid() != starter) {
    // None of them can be joined or destroyed.
    static_cast<void>(new (std::nothrow) std::vector<std::thread>(std::move(threads)));
    return;
  }
  for (auto& thread : threads) thread.join();
}

}}  // namespace lockstep
