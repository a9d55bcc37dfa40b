// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/wait.hpp>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <limits>
#include <thread>

using lockstep::Backoff;
using lockstep::Clock;
using lockstep::deadline_in;
using lockstep::no_deadline;
using lockstep::Sharing;
using lockstep::Signal;

namespace {
// Long enough for any waiter to fall asleep; no result depends on it.
void let_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }
}  // namespace

TEST_CASE("a wait for a true condition returns at once, with or without a deadline") {
  Signal<> signal;
  CHECK(signal.wait([](auto value) { return value == 0; }));
  CHECK(signal.wait([](auto value) { return value == 0; }, Clock::nanoseconds() - 1));
}

TEST_CASE("a wait for a false condition ends at its deadline, not before") {
  Signal<> signal;
  for (double seconds : {0.0, 1e-6, 1e-3, 2e-2}) {
    auto const deadline = deadline_in(seconds);
    CHECK_FALSE(signal.wait([](auto value) { return value == 1; }, deadline));
    CHECK(Clock::nanoseconds() >= deadline);
  }
}

TEST_CASE("deadlines out of range never expire") {
  CHECK(deadline_in(std::numeric_limits<double>::infinity()) == no_deadline);
  CHECK(deadline_in(1e300) == no_deadline);
  CHECK(deadline_in(std::numeric_limits<double>::quiet_NaN()) == no_deadline);
  CHECK(deadline_in(60) < no_deadline);
}

TEST_CASE("a backoff ends") {
  Backoff backoff;
  long pauses = 0;
  while (backoff.pause()) ++pauses;
  CHECK(pauses > 0);
  CHECK_FALSE(backoff.pause());
}

TEST_CASE("post wakes every sleeper and publishes all earlier writes") {
  for (int round = 0; round < 20; ++round) {
    Signal<> signal;
    int written = 0;
    int seen[3] = {};
    std::thread waiters[3];
    for (int i = 0; i < 3; ++i) {
      waiters[i] = std::thread([&, i] {
        signal.wait([](auto value) { return value == 7; });
        seen[i] = written;
      });
    }
    if (round % 2 == 0) let_sleep();
    written = 42;
    signal.post(7);
    for (auto& waiter : waiters) waiter.join();
    for (int value : seen) CHECK(value == 42);
  }
}

TEST_CASE("two threads exchange a number, asleep or not") {
  Signal<> signal;
  std::thread other([&] {
    for (std::uint32_t turn = 1; turn < 400; turn += 2) {
      signal.wait([&](auto value) { return value == turn; });
      if (turn % 100 == 1) let_sleep();
      signal.post(turn + 1);
    }
  });
  for (std::uint32_t turn = 0; turn < 400; turn += 2) {
    CHECK(signal.wait([&](auto value) { return value == turn; }, deadline_in(60)));
    signal.post(turn + 1);
  }
  other.join();
  CHECK(signal.load() == 400);
}

TEST_CASE("add counts across threads; the last one wakes the waiter") {
  Signal<> signal;
  signal.store(4);
  std::thread others[4];
  for (auto& other : others) {
    other = std::thread([&] {
      let_sleep();
      if (signal.add(0U - 1) == 0) signal.wake();
    });
  }
  CHECK(signal.wait([](auto value) { return value == 0; }, deadline_in(60)));
  for (auto& other : others) other.join();
}

TEST_CASE("a signal in shared memory wakes another process") {
  using Shared = Signal<Sharing::processes>;
  void* memory = ::mmap(nullptr, 2 * sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* signals = static_cast<Shared*>(memory);  // zeroed pages are two signals of value 0
  auto const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool good = true;
    for (std::uint32_t turn = 1; turn <= 20 && good; ++turn) {
      good = signals[0].wait([&](auto value) { return value == turn; }, deadline_in(60));
      signals[1].post(turn);
    }
    ::_exit(good ? 0 : 1);
  }
  for (std::uint32_t turn = 1; turn <= 20; ++turn) {
    let_sleep();
    signals[0].post(turn);
    CHECK(signals[1].wait([&](auto value) { return value == turn; }, deadline_in(60)));
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  ::munmap(memory, 2 * sizeof(Shared));
}
