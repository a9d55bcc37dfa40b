// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// A fixed group of threads that share loops. The calling thread of `run` takes part, so a pool of n starts n - 1
/// threads. A run that begins during another run, from inside a task or from another thread, executes on its caller
/// alone. So does every run in a fork of the process. Thread-safe; usable again after an exception. The destructor
/// joins.
class ThreadPool {
 public:
  /// @throws ConfigError if `threads` is below 1 or the system refuses a thread; stops the threads already started
  explicit ThreadPool(int threads = 1);
  ~ThreadPool();
  ThreadPool(ThreadPool const&) = delete;
  ThreadPool& operator=(ThreadPool const&) = delete;

  /// Returns the number of threads, the calling one included.
  [[nodiscard]] int threads() const noexcept { return threads_; }

  /// Calls f(task) once for each task in [0, tasks), in any order and on any member; returns when all are done.
  /// Allocates nothing.
  /// @throws the exception of the lowest task that throws; tasks of other members run to their end first
  template <class Function>
  void run(Index tasks, Function&& f) {
    if (tasks <= 0) return;
    if (threads_ == 1 || tasks == 1 || busy_.exchange(true, std::memory_order_acquire)) {
      for (Index task = 0; task < tasks; ++task) f(task);
      return;
    }
    using Body = std::remove_reference_t<Function>;
    auto const shares = std::min(tasks, shares_per_member * threads_);
    job_ = {[](void const* body, Index begin, Index end, Index& at) {
              for (at = begin; at < end; ++at) (*static_cast<Body*>(const_cast<void*>(body)))(at);
            },
            std::addressof(f), tasks, shares};
    share_among_members();
  }

  /// Cuts [0, count) into chunks of `grain` (the last may be short) and calls f(begin, end) for each. The chunks depend
  /// on count and grain only. A sum per chunk, added up in order, is therefore bit-identical for any number of threads.
  template <class Function>
  void for_ranges(Index count, Index grain, Function&& f) {
    expect<ConfigError>(grain >= 1, [&] {
      return "ThreadPool::for_ranges: grain is " + std::to_string(grain) + ", at least 1 is needed";
    });
    auto const chunks = count <= 0 ? 0 : (count - 1) / grain + 1;
    run(chunks, [&](Index chunk) { f(chunk * grain, chunk == chunks - 1 ? count : (chunk + 1) * grain); });
  }

 private:
  /// Tasks are claimed a share at a time: few enough that claiming costs nothing, enough to even out unequal tasks.
  static constexpr Index shares_per_member = 8;
  /// A wake costs the waker microseconds, so each joining thread wakes two more while shares are left to claim.
  static constexpr int wakes_per_member = 2;

  struct Job {
    void (*call)(void const* body, Index begin, Index end, Index& at) = nullptr;
    void const* body = nullptr;
    Index tasks = 0;
    Index shares = 0;
  };

  void share_among_members();

  /// Claims shares until none are left. Reads the job only while a claimed share is unfinished. A member that is late
  /// for one run claims from the next one or finds nothing, and no thread waits for it to wake up.
  void take_part() noexcept;

  void execute(Index share) noexcept;

  void work() noexcept;

  void stop() noexcept;

  Signal<> start_;                                       // counts runs
  Signal<> unfinished_;                                  // shares of the current run
  alignas(64) std::atomic<std::uint32_t> unclaimed_{0};  // shares of the current run
  alignas(64) Job job_;
  int threads_;
  std::atomic<bool> busy_{false}, stop_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  Index error_task_ = 0;
  ::pid_t const starter_ = ::getpid();
  std::vector<std::thread> workers_;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/thread_pool.ipp>
#endif
