// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/thread_pool.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "malloc_count.hpp"
#include "no_threads.hpp"

using lockstep::Index;
using lockstep::ThreadPool;

TEST_CASE("every task runs exactly once, for any number of threads and tasks") {
  for (int threads : {1, 2, 3, 4, 9}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (Index tasks : {0, 1, 2, 7, 31, 32, 33, 71, 72, 73, 1000}) {
      CAPTURE(threads);
      CAPTURE(tasks);
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(tasks));
      pool.run(tasks, [&](Index task) { ++calls[static_cast<std::size_t>(task)]; });
      for (auto const& count : calls) CHECK(count == 1);
    }
  }
}

TEST_CASE("tasks' writes are visible when run returns, over many runs") {
  ThreadPool pool(3);
  std::vector<Index> values(64);
  for (Index round = 0; round < 20'000; ++round) {
    pool.run(64, [&](Index task) { values[static_cast<std::size_t>(task)] += task + round; });
  }
  for (Index task = 0; task < 64; ++task)
    CHECK(values[static_cast<std::size_t>(task)] == 20'000 * task + 20'000 * 19'999 / 2);
}

TEST_CASE("members sleep between runs, wake for the next, and are waited for") {
  ThreadPool pool(2);
  auto const caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0}, finished{0};
    // Each task waits for the other, so two members must take part. The caller is done first.
    pool.run(2, [&](Index) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++finished;
    });
    CHECK(finished == 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_CASE("all members take part if all are needed") {
  for (int threads : {2, 3, 5, 9}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 5; ++round) {
      std::atomic<int> arrived{0};
      pool.run(threads, [&](Index) {
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
      });
      CHECK(arrived == threads);
      if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // some asleep, some not
    }
  }
}

TEST_CASE("ranges are divided only by count and grain") {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (Index count : {0, 1, 31, 32, 33, 64, 100}) {
      std::vector<int> covered(static_cast<std::size_t>(count));
      std::atomic<int> chunks{0};
      pool.for_ranges(count, 32, [&](Index begin, Index end) {
        ++chunks;
        CHECK(begin % 32 == 0);
        CHECK(end == std::min(begin + 32, count));
        for (Index i = begin; i < end; ++i) ++covered[static_cast<std::size_t>(i)];
      });
      CHECK(chunks == (count + 31) / 32);
      CHECK(std::accumulate(covered.begin(), covered.end(), 0) == count);
    }
    CHECK_THROWS_WITH_AS(pool.for_ranges(3, 0, [](Index, Index) {}), doctest::Contains("grain is 0"),
                         lockstep::ConfigError);
  }
}

TEST_CASE("the lowest failing task's exception reaches the caller, and the pool stays usable") {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      auto const fail = [](Index task) {
        if (task % 10 == 7) throw std::runtime_error("task " + std::to_string(task));
      };
      CHECK_THROWS_WITH_AS(pool.run(100, fail), "task 7", std::runtime_error);
      std::atomic<int> calls{0};
      pool.run(100, [&](Index) { ++calls; });
      CHECK(calls == 100);
    }
  }
}

TEST_CASE("the lowest failing task's exception is thrown even if it fails last") {
  ThreadPool pool(2);
  std::atomic<bool> other_failed{false};
  auto const fail = [&](Index task) {
    if (task == 0) {
      while (!other_failed) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    other_failed = true;
    throw std::runtime_error("task " + std::to_string(task));
  };
  CHECK_THROWS_WITH_AS(pool.run(2, fail), "task 0", std::runtime_error);
}

TEST_CASE("a nested run executes on the member that called it") {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  pool.run(10, [&](Index) {
    auto const self = std::this_thread::get_id();
    pool.run(10, [&](Index) {
      CHECK(std::this_thread::get_id() == self);
      ++calls;
    });
  });
  CHECK(calls == 100);
}

TEST_CASE("several threads may use one pool") {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  auto const use = [&] {
    for (int round = 0; round < 500; ++round) pool.run(16, [&](Index) { ++calls; });
  };
  std::thread other(use);
  use();
  other.join();
  CHECK(calls == 2 * 500 * 16);
}

TEST_CASE("run does not allocate" * doctest::skip(!lockstep_test::counts_mallocs)) {
  ThreadPool pool(4);
  std::vector<double> sums(64);
  auto const before = lockstep_test::mallocs.load();
  for (int round = 0; round < 100; ++round) {
    pool.run(64, [&](Index task) { sums[static_cast<std::size_t>(task)] += 1.0; });
    pool.for_ranges(640, 10, [&](Index begin, Index) { sums[static_cast<std::size_t>(begin / 10)] += 1.0; });
  }
  CHECK(lockstep_test::mallocs == before);
  CHECK(sums[63] == 200.0);
}

TEST_CASE("zero or fewer tasks run nothing") {
  ThreadPool pool(2);
  for (Index tasks : {0, -1, -100}) {
    pool.run(tasks, [](Index) { FAIL("a task"); });
    pool.for_ranges(tasks, 8, [](Index, Index) { FAIL("a range"); });
  }
}

TEST_CASE("at least one thread is required") {
  CHECK_THROWS_WITH_AS(ThreadPool(0), doctest::Contains("0 threads; at least 1"), lockstep::ConfigError);
}

TEST_CASE("a failed thread start is an error, and the threads before it end") {
  lockstep_test::NoThreads const refused;
  CHECK_THROWS_WITH_AS(ThreadPool(3), doctest::Contains("the system refused thread 2 of 3 ("), lockstep::ConfigError);
  CHECK(ThreadPool(1).threads() == 1);
}

TEST_CASE("pools that never ran are destroyed") {
  for (int i = 0; i < 50; ++i) ThreadPool pool(1 + i % 4);
}

TEST_CASE("after a fork, a pool runs all tasks on its caller, and is destroyed") {
  auto pool = std::make_unique<ThreadPool>(4);
  pool->run(100, [](Index) {});
  auto const child = ::fork();
  if (child == 0) {
    ::alarm(60);
    Index sum = 0;
    pool->run(100, [&](Index task) { sum += task; });
    pool.reset();
    ::_exit(sum == 4950 ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
