// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE ThreadPool::ThreadPool(int threads) : threads_(threads) {
  expect<ConfigError>(threads >= 1, [&] {
    return "ThreadPool: " + std::to_string(threads) + " threads; at least 1 is needed (the caller counts as one)";
  });
  if (threads > 1) expect_stack_of_new_threads("ThreadPool");
  try {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    while (static_cast<int>(workers_.size()) < threads - 1)
      workers_.push_back(
          start_thread("ThreadPool", "thread " + std::to_string(workers_.size() + 2) + " of " + std::to_string(threads),
                       [this] { work(); }));
  } catch (...) {
    stop();
    throw;
  }
}

LOCKSTEP_INLINE void ThreadPool::share_among_members() {
  unfinished_.store(static_cast<std::uint32_t>(job_.shares));
  unclaimed_.store(static_cast<std::uint32_t>(job_.shares), std::memory_order_release);  // publishes the job
  start_.add(1);
  start_.wake(wakes_per_member);
  take_part();
  unfinished_.wait([](std::uint32_t shares) { return shares == 0; });
  auto error = std::exchange(error_, nullptr);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

LOCKSTEP_INLINE void ThreadPool::take_part() noexcept {
  std::uint32_t done = 0;
  for (auto left = unclaimed_.load(std::memory_order_relaxed); left > 0;) {
    if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    execute(job_.shares - static_cast<Index>(left));
    ++done;
    left = unclaimed_.load(std::memory_order_relaxed);
  }
  if (done > 0 && unfinished_.add(0U - done) == 0) unfinished_.wake();
}

LOCKSTEP_INLINE void ThreadPool::execute(Index share) noexcept {
  auto const each = job_.tasks / job_.shares, longer = job_.tasks % job_.shares;
  auto const begin = share * each + std::min(share, longer);
  Index at = begin;
  try {
    job_.call(job_.body, begin, begin + each + (share < longer ? 1 : 0), at);
  } catch (...) {
    std::lock_guard const lock(error_mutex_);
    if (error_ && error_task_ < at) return;
    error_ = std::current_exception();
    error_task_ = at;
  }
}

LOCKSTEP_INLINE void ThreadPool::work() noexcept {
  for (std::uint32_t seen = 0;;) {
    start_.wait([&](std::uint32_t now) { return now != seen; });
    seen = start_.load();
    if (stop_.load(std::memory_order_relaxed)) return;
    if (unclaimed_.load(std::memory_order_relaxed) > 0) start_.wake(wakes_per_member);
    take_part();
  }
}

LOCKSTEP_INLINE void ThreadPool::stop() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  start_.add(1);
  start_.wake();
  join_threads(workers_, starter_);
}

LOCKSTEP_COLD_INLINE ThreadPool::~ThreadPool() { stop(); }

}}  // namespace lockstep
