// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/shared_memory/thread_communicator.hpp>

#include <doctest/doctest.h>

#include <lockstep/launch/run/run.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/conformance.hpp"
#include "comm/faults.hpp"
#include "comm/operations.hpp"
#include "malloc_count.hpp"

using namespace lockstep_test;
using lockstep::CollectiveMismatch;
using lockstep::ConfigError;
using lockstep::RankLost;
using lockstep::RankStalled;

namespace {

launch::Options ranks(int n) { return {.threads = n}; }

}  // namespace

TEST_CASE("threads have the properties of every engine") {
  for (int const n : {2, 3, 4}) {
    CAPTURE(n);
    CHECK_NOTHROW(launch::run(ranks(n), [](launch::World& world) { return conformance(world); }));
  }
}

TEST_CASE("threads support every operation") {
  for (int const n : {2, 3, 4}) {
    CAPTURE(n);
    CHECK_NOTHROW(launch::run(ranks(n), [](launch::World& world) { return operations(world); }));
  }
}

TEST_CASE("sixty-four megabytes, of both kinds of memory") {
  CHECK_NOTHROW(launch::run(ranks(2), [](launch::World& world) {
    auto c = comm::connect(world);
    constexpr std::size_t n = (std::size_t{64} << 20) / sizeof(float);
    auto const block = c.allocate(n * sizeof(float));
    std::vector<float> own(n / 4 + 3);  // does not end at a chunk's boundary
    for (std::span<float> const x : {std::span(reinterpret_cast<float*>(block.data()), n), std::span(own)}) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i % 1021) << world.rank);
      comm::all_reduce(c, x).wait();
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) wrong += x[i] != static_cast<float>(3 * (i % 1021));
      require(wrong == 0, "64 MB");
    }
    return 0;
  }));
}

TEST_CASE("five and nine ranks use the tree, too") {
  for (int const n : {5, 9})
    CHECK_NOTHROW(launch::run(ranks(n), [](launch::World& world) {
      auto c = comm::connect(world);
      for (auto const memory : {Memory::allocated, Memory::own}) {
        Case<float> one(c, memory, 3001, 1, 3, 5);
        c.start(one.operation());
        c.finish();
        one.check("many ranks");
      }
      return 0;
    }));
}

TEST_CASE("threads do not allocate in the steady state") {
  if (!counts_mallocs) return;
  CHECK_NOTHROW(launch::run(ranks(3), [](launch::World& world) {
    return allocates_nothing_when_steady(world, [] { return mallocs.load(); });
  }));
}

TEST_CASE("counters may wrap around") {
  std::barrier set(2);
  CHECK_NOTHROW(launch::run(ranks(2), [&](launch::World& world) {
    if (world.rank == 0) start_counters_at(world, 0xffffff80U);
    set.arrive_and_wait();
    return conformance(world);
  }));
}

TEST_CASE("a rank may connect again after its communicator is gone, and not before") {
  std::atomic<int> started = 0;
  CHECK_NOTHROW(launch::run(ranks(2), [&](launch::World& world) {
    for (int i = 0; i < 3; ++i) {
      auto c = comm::connect(world);
      refuses([&] { (void)comm::connect(world); }, "rank " + std::to_string(world.rank) + " is connected already");
      auto const block = c.allocate(100000);
      Case<double> one(c, Memory::allocated, 5000, 0, 2, static_cast<std::uint64_t>(i));
      Case<double> staged(c, Memory::own, 100000, 0, 0, static_cast<std::uint64_t>(i));
      c.start(one.operation());
      c.finish();
      one.check("connected again");
      while (started < 2 * i + world.rank) std::this_thread::yield();
      c.start(staged.operation());  // the second rank proceeds as far as it can while the first stages nothing
      ++started;
      while (started < 2 * i + 2) std::this_thread::yield();
      c.finish();
      staged.check("connected again, staged");
    }
    return 0;
  }));
}

TEST_CASE("ranks that call two parts in another order learn how to call them") {
  launch::Options options = ranks(2);
  options.limits = {.warn_seconds = 0.05, .stall_seconds = 0.3};
  std::mutex mutex;
  std::string warning;
  options.warn = [&](std::string const& text) {
    std::lock_guard const lock(mutex);
    if (warning.empty()) warning = text;
  };
  auto const train = [](launch::World& world) {
    auto all = comm::connect(world);
    auto first = all.split(0, world.rank), second = all.split(0, world.rank);
    (world.rank == 0 ? first : second).barrier();
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run(options, train),
                       doctest::Contains("It is alive; the limit of 0 s is over; this communicator is a part made by "
                                         "split: call all parts in the same order on all ranks"),
                       RankStalled);
  CHECK(
      warning.ends_with("still waiting; this communicator is a part made by split: call all parts in the same order "
                        "on all ranks"));
}

TEST_CASE("ranks that connect again split into other groups, whatever the earlier groups have done") {
  auto options = ranks(4);
  options.limits.stall_seconds = 5;
  CHECK_NOTHROW(launch::run(options, [](launch::World& world) {
    auto const sums = [&](comm::AnyCommunicator c, int color, int times) {
      auto group = c.split(color, 0);
      for (int i = 0; i < times; ++i) {
        std::vector<float> x(3000, static_cast<float>(world.rank + i));
        comm::all_reduce(group, std::span(x)).wait();
        auto const expected = color < 2 ? 4 * color + 1 : 2 * (color - 2) + 2;
        require(x.front() == static_cast<float>(expected + 2 * i) && x.back() == x.front(), "sum of a group");
      }
    };
    int const half = world.rank / 2;
    sums(comm::connect(world), half, half == 0 ? 5 : 3);  // {0, 1}, {2, 3}
    sums(comm::connect(world), 2 + world.rank % 2, 3);    // {0, 2}, {1, 3}
    return 0;
  }));
}

TEST_CASE("memory of a rank that connects again is zeroed, and separate from living groups") {
  auto options = ranks(2);
  options.limits.stall_seconds = 5;
  CHECK_NOTHROW(launch::run(options, [](launch::World& world) {
    auto const split = [&] { return comm::connect(world).split(0, 0); };
    split().barrier();
    auto group = split();
    auto c = comm::connect(world);
    auto const block = c.allocate(std::size_t{1} << 20);
    require(std::all_of(block.data(), block.data() + block.bytes(), [](std::byte b) { return b == std::byte{0}; }),
            "zeroed");
    std::memset(block.data(), 1, block.bytes());
    float x = 1;
    comm::all_reduce(group, std::span(&x, 1)).wait();
    require(x == 2, "sum of a group that is alive");
    c.barrier();
    return 0;
  }));
}

TEST_CASE("a rank that gave up cannot connect again") {
  CHECK_NOTHROW(launch::run(ranks(2), [](launch::World& world) {
    {
      auto c = comm::connect(world);
      if (world.rank == 1) return 0;
      try {
        c.barrier();
      } catch (RankLost const&) {
      }
    }
    refuses([&] { (void)comm::connect(world); }, "rank 0 was connected before, and gave up");
    return 0;
  }));
}

TEST_CASE("memory outlives the communicator") {
  CHECK_NOTHROW(launch::run(ranks(2), [](launch::World& world) {
    lockstep::memory::Block block;
    {
      auto c = comm::connect(world);
      block = c.allocate(8);
    }
    std::memset(block.data(), 1, 8);
    return 0;
  }));
}

TEST_CASE("an engine refuses another engine's world") {
  CHECK_THROWS_WITH_AS(comm::ThreadCommunicator{launch::World{}}, doctest::Contains("the engine 'self'"), ConfigError);
}

TEST_CASE("a rank that throws releases the others, which name it") {
  std::mutex mutex;
  std::vector<std::string> recorder;
  auto const train = [&](launch::World& world) {
    auto c = comm::connect(world);
    c.barrier();
    if (world.rank == 1) throw std::domain_error("article 17 has no label");
    try {
      c.barrier();
    } catch (RankLost const& lost) {
      std::lock_guard const lock(mutex);
      recorder.push_back(std::to_string(lost.rank()) + " " + lost.what());
      throw;
    }
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run(ranks(3), train), "article 17 has no label", std::domain_error);
  REQUIRE(recorder.size() == 2);
  for (auto const& text : recorder) {
    CAPTURE(text);
    CHECK(text.starts_with("1 rank 1 failed: article 17 has no label; rank "));
    CHECK(text.find("was waiting in operation 1 (barrier)") != std::string::npos);
  }
}

TEST_CASE("a rank that throws after its part is named by ranks that wait for another") {
  for (int const thrower : {0, 1}) {
    CAPTURE(thrower);
    auto options = ranks(3);
    options.limits.stall_seconds = 5;
    std::atomic<int> named{-1};  // the rank named in the last rank's error
    auto const train = [&](launch::World& world) -> int {
      auto c = comm::connect(world);
      comm::CollectiveOperation operation{.collective = comm::Collective::barrier};
      if (world.rank + thrower == 1) {  // late, and running
        while (named == -1) std::this_thread::yield();
        return 0;
      }
      c.start(operation);
      if (world.rank == thrower) throw std::domain_error("article 17 has no label");
      try {
        c.finish();
      } catch (RankLost const& lost) {
        named = lost.rank();
      } catch (RankStalled const&) {
        named = 2;
      }
      return 0;
    };
    CHECK_THROWS_AS(launch::run(options, train), std::domain_error);
    CHECK(named == thrower);
  }
}

TEST_CASE("a rank that throws during operations leaves no dangling memory") {
  auto const train = [](launch::World& world) -> int {
    auto c = comm::connect(world);
    std::vector<std::unique_ptr<Case<float>>> cases;
    for (std::uint64_t i = 0; i < 20; ++i)
      cases.push_back(std::make_unique<Case<float>>(c, i % 2 == 0 ? Memory::allocated : Memory::own, 100000, 0, 1, i));
    for (auto& one : cases) c.start(one->operation());
    if (world.rank == 1) throw std::domain_error("in the middle");
    c.finish();
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run(ranks(3), train), "in the middle", std::domain_error);
}

TEST_CASE("memory freed by a rank during a sum stays valid for the others") {
  enum class By { its_own, a_group, a_group_that_is_gone };
  std::atomic<int> turn = 0;
  auto const until = [&](int which) {
    while (turn.load() != which) std::this_thread::yield();
  };
  constexpr Index count = 100000;
  By by{};
  auto const train = [&](launch::World& world) {
    auto c = comm::connect(world);
    auto memory = c.allocate(count * sizeof(float));
    auto* const data = reinterpret_cast<float*>(memory.data());
    std::fill(data, data + count, 1.0f);
    std::optional<comm::AnyCommunicator> group(by == By::its_own ? std::move(c) : c.split(0, 0));
    comm::CollectiveOperation operation{.data = data, .count = count};
    if (world.rank == 0) until(1);  // so it does its part at its start
    group->start(operation);
    if (world.rank == 0 && by == By::a_group_that_is_gone) group.reset();
    if (world.rank == 0) memory = {};
    turn = 2 - world.rank;
    if (world.rank == 0) return 0;
    until(2);
    group->finish();
    CHECK(std::count(data, data + count, 2.0f) == count);
    return 0;
  };
  for (auto const one : {By::its_own, By::a_group, By::a_group_that_is_gone}) {
    CAPTURE(one);
    by = one;
    turn = 0;
    CHECK_NOTHROW(launch::run(ranks(2), train));
  }
}

TEST_CASE("a rank that has ended its work is lost to ranks that wait for it") {
  auto const train = [](launch::World& world) {
    auto c = comm::connect(world);
    c.barrier();
    if (world.rank == 0) c.barrier();
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run(ranks(2), train), doctest::Contains("rank 1 has ended its work"), RankLost);
}

TEST_CASE("the work of a rank before its end counts") {
  auto const train = [](launch::World& world) {
    auto c = comm::connect(world);
    Case<float> one(c, Memory::allocated, 100000, 0, 1, 1);
    c.start(one.operation());
    c.finish();
    one.check("the last piece");
    return 0;
  };
  for (int i = 0; i < 20; ++i) CHECK_NOTHROW(launch::run(ranks(3), train));
}

TEST_CASE("a missing rank causes a warning, then an error") {
  std::mutex mutex;
  std::vector<std::string> warnings;
  auto options = ranks(3);
  options.limits = {.warn_seconds = 0.05, .stall_seconds = 1.2};
  options.warn = [&](std::string const& text) {
    std::lock_guard const lock(mutex);
    warnings.push_back(text);
  };
  std::atomic<int> stalled{0}, given_up{0};
  auto const train = [&](launch::World& world) -> int {
    auto c = comm::connect(world);
    for (int i = 0; i < 6; ++i) c.barrier();
    if (world.rank == 1) {
      while (stalled == 0) std::this_thread::yield();
      return 0;
    }
    try {
      float x = 1;
      comm::CollectiveOperation operation{lockstep::ElementType::float32, &x, 1, comm::Reduction::sum, {}};
      c.start(operation);
      c.finish();
    } catch (RankStalled const& error) {
      auto const& history = error.history();  // from all ranks, a line each
      given_up += error.rank() == 1 && std::string(error.what()).ends_with(". It is alive; the limit of 1 s is over") &&
                  history.find("rank 1: 0 barrier") != std::string::npos &&
                  history.find("rank 0: 0 barrier") != std::string::npos &&
                  history.find("; 6 all_reduce of 1 float32 (sum, 0 piggybacked scalars)") != std::string::npos &&
                  history.find("s ago, under way\n") != std::string::npos;
      try {
        c.finish();
      } catch (RankStalled const& again) {
        given_up += 100 * (std::string(again.what()) == error.what());
      }
      ++stalled;
      throw;
    }
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run(options, train),
                       doctest::Contains("in operation 6 (all_reduce of 1 float32 (sum, 0 piggybacked scalars)) for "
                                         "rank 1, last seen in operation 5 (barrier)"),
                       RankStalled);
  CHECK(stalled >= 1);
  CHECK(given_up == 101 * stalled);  // each received it twice
  REQUIRE(warnings.size() == 2);     // for all ranks together
  CHECK(warnings[0].find("for rank 1, last seen in operation 5 (barrier)") != std::string::npos);
  CHECK(warnings[1].find("the last operations of each rank:\nrank 0: 3 barrier") == 0);  // the last four
}

TEST_CASE("an exception of the function for warnings ends the operation and all later ones") {
  auto options = ranks(2);
  options.limits = {.warn_seconds = 0.05, .stall_seconds = 2};
  options.warn = [](std::string const& text) { throw std::runtime_error("warned: " + text); };
  std::atomic<bool> gave_up = false;
  int caught = 0;
  auto const train = [&](launch::World& world) {
    auto c = comm::connect(world);
    std::vector<float> x(4, 1);
    if (world.rank == 1) {
      while (!gave_up) std::this_thread::yield();
      auto const sum = comm::all_reduce(c, x);  // posted, and waited for in vain
      return 0;
    }
    auto operation =
        std::make_unique<comm::CollectiveOperation>(comm::CollectiveOperation{.data = x.data(), .count = 4});
    c.start(*operation);
    for (int i = 0; i < 2; ++i) {
      try {
        c.finish();
      } catch (std::exception const& error) {
        caught += std::string(error.what()).starts_with("warned: rank 0 has waited");
      }
    }
    operation.reset();
    gave_up = true;
    ::usleep(50'000);
    c.progress();  // does not touch the operation
    CHECK(x[0] == 1);
    return 0;
  };
  CHECK(launch::run(options, train) == 0);
  CHECK(caught == 2);
}

TEST_CASE("a rank missing in a group is named by its rank in the run") {
  auto options = ranks(3);
  options.limits = {.warn_seconds = 0.05, .stall_seconds = 1.2};
  std::mutex mutex;
  std::string warnings;
  options.warn = [&](std::string const& text) {
    std::lock_guard const lock(mutex);
    warnings += text + "\n";
  };
  std::atomic<bool> given_up{false};
  auto const train = [&](launch::World& world) -> int {
    auto c = comm::connect(world);
    stay_away(c, given_up);
    return 0;
  };
  try {
    (void)launch::run(options, train);
    FAIL("no rank gave up");
  } catch (RankStalled const& error) {
    CHECK(error.rank() == 2);
    CHECK(std::string(error.what()).find("rank 1 has waited") == 0);
    CHECK(std::string(error.what()).find("(barrier) for rank 2") != std::string::npos);
  }
  CHECK(warnings.find("(barrier) for rank 2") != std::string::npos);
}

TEST_CASE("ranks that disagree all learn it, with both sides") {
  for (int const kind : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(kind);
    std::atomic<int> reported{0};
    auto const train = [&](launch::World& world) -> int {
      auto c = comm::connect(world);
      try {
        disagree(c, kind);
      } catch (CollectiveMismatch const& error) {
        std::string const text = error.what();
        reported += text.find("rank 1 ") != std::string::npos && text.find("operation 0") != std::string::npos &&
                    text.find(disagreement(kind, false)) != std::string::npos &&
                    text.find(disagreement(kind, true)) != std::string::npos;
        throw;
      }
      return 0;
    };
    CHECK_THROWS_AS(launch::run(ranks(3), train), CollectiveMismatch);
    CHECK(reported == 3);
  }
}

TEST_CASE("ranks that disagree report it without waiting for a late rank") {
  std::atomic<int> reported{0};
  auto const train = [&](launch::World& world) -> int {
    auto c = comm::connect(world);
    while (world.rank == 2 && reported < 2) std::this_thread::yield();
    try {
      disagree(c, 0);
    } catch (lockstep::CommunicationError const& error) {
      reported += std::string(error.what()).find(disagreement(0, true)) != std::string::npos;
      throw;
    }
    return 0;
  };
  CHECK_THROWS_AS(launch::run(ranks(3), train), CollectiveMismatch);
  CHECK(reported == 3);  // the late one is notified too
}
