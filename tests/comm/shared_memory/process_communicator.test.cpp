// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/shared_memory/process_communicator.hpp>

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "comm/conformance.hpp"
#include "comm/faults.hpp"
#include "comm/operations.hpp"
#include "launch/ranks.hpp"
#include "malloc_count.hpp"

using namespace lockstep_test;

namespace {

/// A survivor's error, for the test to read.
void note(launch::World const& world, std::string const& text) {
  Scratch::write("rank" + std::to_string(world.rank), text);
}
std::string note_of(int rank) { return Scratch::read("rank" + std::to_string(rank)); }

/// Operations until one throws; the victim is killed during one of them.
int work_until(launch::World& world, std::function<void(int)> const& in_step) {
  try {
    auto c = comm::connect(world);
    Case<float> large(c, Memory::allocated, 50000, 0, 2, 1), foreign(c, Memory::own, 100000, 0, 0, 2);
    for (int step = 0; step < 100000; ++step) {
      c.start(large.operation());
      c.start(foreign.operation());
      in_step(step);
      c.finish();
    }
  } catch (lockstep::RankLost const& lost) {
    note(world, "lost " + std::to_string(lost.rank()) + ": " + lost.what());
    return 7;
  } catch (lockstep::RankStalled const& stalled) {
    note(world, "stalled " + std::to_string(stalled.rank()) + ": " + stalled.what());
    return 8;
  }
  return 9;
}

}  // namespace

TEST_CASE("rank: conformance" * doctest::skip()) { be_rank(conformance); }

TEST_CASE("processes have the properties of every engine") {
  NothingLeft const nothing_left;
  for (int const n : {2, 3, 4}) {
    auto const outcome = run_processes(n, "rank: conformance");
    CHECK_MESSAGE(outcome.code == 0, n, " ranks: ", outcome.report);
  }
}

TEST_CASE("rank: operations" * doctest::skip()) { be_rank(operations); }

TEST_CASE("processes support every operation") {
  NothingLeft const nothing_left;
  for (int const n : {2, 3, 4}) {
    auto const outcome = run_processes(n, "rank: operations");
    CHECK_MESSAGE(outcome.code == 0, n, " ranks: ", outcome.report);
  }
}

TEST_CASE("rank: steady" * doctest::skip()) {
  be_rank([](launch::World& world) { return allocates_nothing_when_steady(world, [] { return mallocs.load(); }); });
}

TEST_CASE("processes do not allocate in the steady state") {
  if (!counts_mallocs) return;
  auto const outcome = run_processes(2, "rank: steady");
  CHECK_MESSAGE(outcome.code == 0, outcome.report);
}

TEST_CASE("rank: digest" * doctest::skip()) {
  be_rank([](launch::World& world) {
    auto c = comm::connect(world);
    if (world.rank == 0)
      Scratch::write("process", digest(c));
    else
      (void)digest(c);
    return 0;
  });
}

TEST_CASE("threads and processes give equal bits") {
  Scratch const scratch;
  std::string threads;
  CHECK(launch::run({.threads = 3}, [&](launch::World& world) {
          auto c = comm::connect(world);
          auto const text = digest(c);
          if (world.rank == 0) threads = text;
          return 0;
        }) == 0);
  CHECK(run_processes(3, "rank: digest").code == 0);
  CHECK(threads.size() > 100);
  CHECK(threads == Scratch::read("process"));
}

TEST_CASE("rank: killed in a collective" * doctest::skip()) {
  be_rank([](launch::World& world) {
    return work_until(world, [&](int step) {
      if (world.rank == 1 && step == 20) ::raise(SIGKILL);
    });
  });
}

TEST_CASE("a killed rank is named by every survivor, with its process and its signal") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const outcome = run_processes(3, "rank: killed in a collective");
  CHECK(outcome.code == 128 + SIGKILL);
  CHECK(contains(outcome.report, "rank 1 (pid "));
  CHECK(contains(outcome.report, ") was killed by signal 9 (Killed)"));
  for (int const survivor : {0, 2}) {
    auto const text = note_of(survivor);
    CAPTURE(text);
    CHECK(text.starts_with("lost 1: " + outcome.report + "; rank " + std::to_string(survivor) + " (pid "));
    CHECK(contains(text, "was waiting in operation "));
  }
}

TEST_CASE("rank: victim" * doctest::skip()) {
  be_rank([](launch::World& world) {
    if (world.rank == 1) Scratch::write("pid1", std::to_string(::getpid()));
    return work_until(world, [](int) {});
  });
}

TEST_CASE("a rank killed from outside at any instant is named") {
  NothingLeft const nothing_left;
  for (int const microseconds : {0, 300, 1000, 2500, 5000, 9000}) {
    Scratch const scratch;
    std::thread killer([&] {
      auto const victim = [] { return Scratch::read("pid1"); };
      while (victim().empty()) ::usleep(100);
      ::usleep(static_cast<unsigned>(microseconds));
      ::kill(std::stoi(victim()), SIGKILL);
    });
    auto const outcome = run_processes(3, "rank: victim");
    killer.join();
    CHECK(outcome.code == 128 + SIGKILL);
    CHECK(contains(outcome.report, "rank 1 (pid "));
    for (int const survivor : {0, 2}) CHECK(note_of(survivor).starts_with("lost 1: " + outcome.report));
  }
}

TEST_CASE("rank: stopped" * doctest::skip()) {
  launch::Options options;
  options.limits = {.warn_seconds = 0.1, .stall_seconds = 0.5};
  options.warn = [](std::string const& text) {
    Scratch::write(contains(text, "still waiting") ? "warning" : "history", text);
  };
  be_rank(
      [](launch::World& world) {
        return work_until(world, [&](int step) {
          if (world.rank == 1 && step == 3) ::raise(SIGSTOP);
        });
      },
      options);
}

TEST_CASE("a stopped rank causes a warning and then an error, and is killed at the run's end") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  launch::Options options;
  options.grace_seconds = 0.1;
  auto const outcome = run_processes(3, "rank: stopped", options);
  CHECK(outcome.code == 8);
  CHECK(contains(Scratch::read("warning"), "for rank 1 (pid "));
  CHECK(contains(Scratch::read("warning"), "It is alive; still waiting"));
  CHECK(contains(Scratch::read("history"), "\nrank 1 (pid "));
  CHECK(contains(Scratch::read("history"), "all_reduce of 50000 float32 (sum, 2 piggybacked scalars)"));
  CHECK((note_of(0).starts_with("stalled 1: ") || note_of(2).starts_with("stalled 1: ")));
}

TEST_CASE("rank: disagrees" * doctest::skip()) {
  be_rank([](launch::World& world) {
    auto c = comm::connect(world);
    try {
      disagree(c, 0);
    } catch (lockstep::CollectiveMismatch const& mismatch) {
      note(world, mismatch.what());
      throw;
    }
    return 0;
  });
}

TEST_CASE("processes that disagree all learn it, with both sides") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const outcome = run_processes(3, "rank: disagrees");
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.report, "the ranks disagree in operation 0"));
  for (int const rank : {0, 1, 2}) {
    CHECK(contains(note_of(rank), disagreement(0, false)));
    CHECK(contains(note_of(rank), disagreement(0, true)));
  }
}

TEST_CASE("an engine refuses another engine's world") {
  CHECK_THROWS_WITH_AS(comm::ProcessCommunicator{launch::World{}}, doctest::Contains("the engine 'self'"),
                       lockstep::ConfigError);
}
