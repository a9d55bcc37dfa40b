// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/run/run.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>

#include "launch/ranks.hpp"
#include "no_threads.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOCKSTEP_THREAD_SANITIZER
#endif
#endif

using namespace lockstep_test;
using launch::World;
using lockstep::ConfigError;

TEST_CASE("one rank runs in this process") {
  auto const here = std::this_thread::get_id();
  std::string warned;
  launch::Options const options{.limits = {.warn_seconds = 7, .stall_seconds = 9},
                                .warn = [&](std::string const& message) { warned = message; }};
  int const code = launch::run(options, [&](World& world) {
    CHECK(std::this_thread::get_id() == here);
    CHECK(world.size == 1);
    CHECK(world.engine == launch::Engine::self);
    CHECK(world.limits.warn_seconds == 7);
    CHECK(world.limits.stall_seconds == 9);
    world.warn("slow");
    return 5;
  });
  CHECK(warned == "slow");
  CHECK(code == 5);
  CHECK_THROWS_WITH_AS(launch::run({}, [](World&) -> int { throw std::domain_error("mine"); }), "mine",
                       std::domain_error);
}

TEST_CASE("thread ranks share one world, and the first is the caller") {
  std::atomic<int> ranks{0}, callers{0};
  auto const here = std::this_thread::get_id();
  int const code = launch::run({.threads = 4}, [&](World& world) {
    ranks += 1 << (8 * world.rank);
    callers += (std::this_thread::get_id() == here) == (world.rank == 0);
    bool const right = world.size == 4 && world.local_rank == world.rank && world.local_size == 4 &&
                       world.engine == launch::Engine::thread && world.segment &&
                       world.segment->control().head.job == world.job;
    return right ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(ranks == 0x01010101);
  CHECK(callers == 4);
}

TEST_CASE("if the system refuses a thread for signals or a rank, the error names a remedy") {
  lockstep_test::NoThreads const refused;
  auto const train = [](World&) { return 0; };
  CHECK_THROWS_WITH_AS(launch::run({.on_signal = launch::OnSignal::request_stop}, train),
                       doctest::Contains("launch: the system refused the thread that receives signals ("), ConfigError);
  CHECK_THROWS_WITH_AS(launch::run({.threads = 2}, train), doctest::Contains("refused thread 2 of 2 ("), ConfigError);
  CHECK_THROWS_WITH_AS(launch::run({.threads = 2}, train), doctest::Contains("; ask for fewer, or raise"), ConfigError);
}

TEST_CASE("the first exception of a thread rank is thrown, after all ranks have ended") {
  std::atomic<int> ended{0};
  auto const train = [&](World& world) -> int {
    if (world.rank == 2) throw std::domain_error("the first");
    while (world.segment->control().first_failure() < 0) std::this_thread::yield();
    ++ended;
    if (world.rank == 1) throw std::runtime_error("a later one");
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run({.threads = 4}, train), "the first", std::domain_error);
  CHECK(ended == 3);
  CHECK_THROWS_AS(launch::run({.threads = 2}, [](World&) -> int { throw 3; }), int);
}

TEST_CASE("the exit code of thread ranks is the first failed rank's") {
  auto const train = [](World& world) {
    if (world.rank == 1) return 4;
    while (world.segment->control().first_failure() < 0) std::this_thread::yield();
    return 6;
  };
  CHECK(launch::run({.threads = 3}, train) == 4);
}

TEST_CASE("a signal requests a stop of this process's ranks, if that is enabled") {
  auto* const before = ::signal(SIGHUP, SIG_DFL);  // whatever started the tests
  for (int const threads : {1, 2})
    for (int const signal : {SIGTERM, SIGUSR1, SIGHUP}) {
      launch::Options options;
      options.threads = threads;
      options.on_signal = launch::OnSignal::request_stop;
      std::atomic<int> asked{0};
      int const code = launch::run(options, [&](World& world) {
        if (world.rank == 0) ::kill(::getpid(), signal);
        auto const token = world.stop_request->token();
        while (!token.stop_requested()) std::this_thread::yield();
        ++asked;
        return 128 + world.stop_request->signal();
      });
      CHECK(code == 128 + signal);
      CHECK(asked == threads);
    }
  CHECK(launch::run({}, [](World& world) { return world.stop_request ? 1 : 0; }) == 0);

  ::signal(SIGHUP, SIG_IGN);  // nohup
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  CHECK(launch::run(options, [](World& world) {
          ::kill(::getpid(), SIGHUP);
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return world.stop_request->signal();
        }) == 0);
  ::signal(SIGHUP, before);
}

TEST_CASE("threads that exist before the run, and programs that the run starts, keep their signal handling") {
  std::atomic<bool> over = false;
  std::thread earlier([&] {
    while (!over) ::usleep(1000);
  });
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  int started = 0, forked = SIGTERM;
  int const code = launch::run(options, [&](World& world) {
    auto* const program = ::popen("kill -TERM $$; echo survived", "w");
    REQUIRE(program != nullptr);
    started = ::pclose(program);
#if !defined(LOCKSTEP_THREAD_SANITIZER)  // it delivers no signals to a fork of several threads
    auto const fork = ::fork();
    if (fork == 0) {
      for (int i = 0; i < 5000; ++i) ::usleep(1000);
      ::_exit(0);
    }
    ::kill(fork, SIGTERM);
    CHECK(::waitpid(fork, &forked, 0) == fork);
#endif
    CHECK(world.stop_request->signal() == 0);
    sigset_t mine, before;
    ::sigemptyset(&mine);
    ::sigaddset(&mine, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &mine, &before);  // so that the other thread is chosen
    ::kill(::getpid(), SIGTERM);
    while (world.stop_request->signal() == 0) std::this_thread::yield();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return 128 + world.stop_request->signal();
  });
  over = true;
  earlier.join();
  CHECK(code == 128 + SIGTERM);
  for (int const status : {started, forked}) {
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGTERM);
  }
}

TEST_CASE("a process started without standard streams uses their numbers for no other file") {
  int const kept = ::fcntl(0, F_DUPFD_CLOEXEC, 10);
  REQUIRE(kept >= 10);
  ::close(0);
  launch::run({}, [](World&) {
    int const file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    CHECK(file > 2);
    ::close(file);
    return 0;
  });
  ::dup2(kept, 0);
  ::close(kept);
}

TEST_CASE("a thread rank that stopped on request hides no failure of another") {
  launch::Options options;
  options.threads = 2;
  options.on_signal = launch::OnSignal::request_stop;
  auto const run = [&](std::function<int()> const& later) {
    return launch::run(options, [&](World& world) {
      if (world.rank == 0) ::kill(::getpid(), SIGTERM);
      while (world.stop_request->signal() == 0) std::this_thread::yield();
      if (world.rank == 1) return 128 + SIGTERM;
      while (!world.segment->control().has_ended(1)) std::this_thread::yield();
      return later();
    });
  };
  CHECK_THROWS_WITH_AS(run([]() -> int { throw std::domain_error("the disk is full"); }), "the disk is full",
                       std::domain_error);
  CHECK(run([] { return 4; }) == 4);
  CHECK(run([] { return 0; }) == 128 + SIGTERM);
}

TEST_CASE("invalid rank numbers are refused") {
  auto const never = [](World&) -> int {
    FAIL("started");
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run({.nproc = 0}, never), doctest::Contains("nproc is 0"), ConfigError);
  CHECK_THROWS_WITH_AS(launch::run({.threads = -1}, never), doctest::Contains("threads is -1"), ConfigError);
  CHECK_THROWS_WITH_AS(launch::run({.nproc = 257}, never), doctest::Contains("from 1 to 256"), ConfigError);
  CHECK_THROWS_WITH_AS(launch::run({.nproc = 2, .threads = 2}, never), doctest::Contains("not both"), ConfigError);
}

TEST_CASE("a half-set environment is refused") {
  ::setenv("LOCKSTEP_RANK", "0", 1);
  CHECK_THROWS_WITH_AS(launch::run({}, [](World&) { return 0; }), doctest::Contains("but not LOCKSTEP_WORLD_SIZE"),
                       ConfigError);
  ::unsetenv("LOCKSTEP_RANK");
}

TEST_CASE("an environment inherited from another program is refused") {
  launch::detail::SupervisedRank const place{0, 2, ::getpid(), 0, 5};  // this process is not its own parent
  for (auto const& text : place.assignments())
    ::setenv(text.substr(0, text.find('=')).c_str(), text.substr(text.find('=') + 1).c_str(), 1);
  CHECK_THROWS_WITH_AS(launch::run({}, [](World&) { return 0; }), doctest::Contains("is not the parent of this one"),
                       ConfigError);
  for (auto const* name : launch::detail::SupervisedRank::variables) ::unsetenv(name);
}

TEST_CASE("rank: place" * doctest::skip()) {
  be_rank([](World& world) {
    bool const right =
        world.size == 3 && world.local_rank == world.rank && world.engine == launch::Engine::process && world.segment;
    Scratch::write("job" + std::to_string(world.rank), std::to_string(world.job) + (right ? " right" : " wrong"));
    return 0;
  });
}

TEST_CASE("rank: twice" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") == nullptr) return;
  auto const nothing = [](World&) { return 0; };
  auto const code = launch::run({}, nothing);
  std::string message = "nothing";
  try {
    launch::run({}, nothing);
  } catch (ConfigError const& error) {
    message = error.what();
  }
  Scratch::write("twice", message);
  std::_Exit(code);
}

TEST_CASE("a process that was started as a rank runs as one once") {
  Scratch const scratch;
  CHECK(run_processes(2, "rank: twice").code == 0);
  CHECK(contains(Scratch::read("twice"), "has run as one; a program that starts processes calls launch::run once"));
}

TEST_CASE("processes share one world") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  CHECK(run_processes(3, "rank: place").code == 0);
  CHECK(contains(Scratch::read("job0"), " right"));
  CHECK(Scratch::read("job1") == Scratch::read("job0"));
  CHECK(Scratch::read("job2") == Scratch::read("job0"));
  auto const before = Scratch::read("job0");
  CHECK(run_processes(3, "rank: place").code == 0);
  CHECK(Scratch::read("job0") != before);
}

TEST_CASE("rank: returns 0" * doctest::skip()) {
  be_rank([](World&) { return 0; });
}

TEST_CASE("processes start although the program has cleared its environment") {
  NothingLeft const nothing_left;
  char** const before = environ;
  environ = nullptr;  // as clearenv() does, without freeing the list
  auto const outcome = run_processes(2, "rank: returns 0");
  environ = before;
  CHECK(outcome.code == 0);
  CHECK(outcome.report.empty());
}

TEST_CASE("rank: clears its environment" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") == nullptr) return;
  ::clearenv();
  std::_Exit(launch::run({}, [](World& world) { return world.size == 2 ? 0 : 5; }));
}

TEST_CASE("a rank that clears its environment remains a rank, and starts no ranks of its own") {
  NothingLeft const nothing_left;
  auto const outcome = run_processes(2, "rank: clears its environment");
  CHECK(outcome.code == 0);
  CHECK(outcome.report.empty());
}

TEST_CASE("rank: throws without a report" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) throw std::runtime_error("no more paper");
    while (world.segment->control().first_failure() < 0) ::usleep(500);
    return 1;
  });
}

TEST_CASE("without a function for the report, standard error receives it") {
  Scratch const scratch;
  int const before = ::dup(2);
  int const file = ::open(Scratch::path("stderr").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(file, 2);
  launch::Options options;
  options.nproc = 2;
  options.arguments = {"test", "--test-case=rank: throws without a report", "--no-skip=true"};
  auto const code = launch::run(options, [](World&) { return 99; });
  ::dup2(before, 2);
  ::close(before);
  ::close(file);
  CHECK(code == 1);
  auto const text = Scratch::read("stderr");
  CAPTURE(text);
  CHECK(text.starts_with(std::string(program_invocation_short_name) + ": rank 1 (pid "));
  CHECK(text.ends_with(") failed: no more paper\n"));
}
