// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/store/store_communicator.hpp>
#include <lockstep/core/file_descriptor.hpp>

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/faults.hpp"
#include "comm/operations.hpp"
#include "comm/store_ranks.hpp"

using namespace lockstep_test;
using lockstep::FileDescriptor;

namespace {

template <class Body>
void all_agree(int n, Body const& body) {
  for (auto const& error : run_store_ranks(n, body)) CHECK_NOTHROW(error ? std::rethrow_exception(error) : void());
}
std::string what_of(std::exception_ptr const& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (std::exception const& it) {
    return it.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a store has the properties of every engine, for 1 to 4 ranks") {
  for (int n = 1; n <= 4; ++n) {
    CAPTURE(n);
    all_agree(n, [](launch::World& world) {
      comm::AnyCommunicator c(comm::StoreCommunicator{world});
      require(c.rank() == world.rank && c.size() == world.size && std::string(c.name()) == "store", "place and name");
      pieces_are_started_again(c);
      max_spreads_nan(c);
      impossible_pieces_are_refused(c);
      if (world.size == 3) bytes_move(c);
      std::uint64_t salt = 0;
      for (Index const count : {0, 1, 33, 1025, 300001})  // the last one in several chunks
        for (std::size_t const scalars : {0U, 16U}) {
          Case<float> one(c, Memory::own, count, 1, scalars, ++salt);
          c.start(one.operation());
          c.finish();
          one.check("sum");
        }
    });
  }
}

TEST_CASE("operations may all be in progress at once, and complete in order") {
  all_agree(3, [](launch::World& world) {
    comm::AnyCommunicator c(comm::StoreCommunicator{world});
    std::vector<std::unique_ptr<Case<double>>> cases;
    for (std::uint64_t i = 0; i < 40; ++i)
      cases.push_back(std::make_unique<Case<double>>(c, Memory::own, static_cast<Index>(i * 37), 0, i % 17, i));
    for (auto& one : cases) c.start(one->operation());
    c.finish();
    for (auto const& one : cases) one->check("under way");
  });
}

TEST_CASE("every operation over a store, and on its splits") {
  all_agree(4, [](launch::World& world) {
    comm::AnyCommunicator c(comm::StoreCommunicator{world});
    has_every_operation(c);
  });
}

TEST_CASE("ranks that call another operation, are missing or are gone are named") {
  auto errors = run_store_ranks(3, [](launch::World& world) {
    comm::StoreCommunicator c(world);
    std::vector<float> x(static_cast<std::size_t>(world.rank == 2 ? 5 : 4));
    CollectiveOperation operation{ElementType::float32, x.data(), std::ssize(x), comm::Reduction::sum, {}};
    c.start(operation);
    c.finish();
  });
  for (auto const& error : errors) {
    CHECK_THROWS_AS(std::rethrow_exception(error), lockstep::CollectiveMismatch);
    CHECK(what_of(error).find("all_reduce of 5 float32") != std::string::npos);
    CHECK(what_of(error).find("all_reduce of 4 float32") != std::string::npos);
  }
  errors = run_store_ranks(3,
                           [](launch::World& world) {
                             comm::StoreCommunicator c(world);
                             if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
                             if (world.rank != 1) comm::AnyCommunicator(std::move(c)).barrier();
                           },
                           {.warn_seconds = 60, .stall_seconds = 0.1});
  CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankStalled);
  CHECK(what_of(errors[2]).find("s in operation 0 (barrier) for rank 1") != std::string::npos);
  errors = run_store_ranks(2, [](launch::World& world) {
    if (world.rank == 1) return world.store.reset();
    world.segment->control().mark_lost(1);  // as the news would report it
    comm::AnyCommunicator(comm::StoreCommunicator(world)).barrier();
  });
  CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankLost);
  launch::World alone;
  CHECK_THROWS_WITH_AS(comm::StoreCommunicator{alone}, doctest::Contains("engine 'self'"), lockstep::ConfigError);
}

TEST_CASE("one rank warns for all that wait") {
  std::atomic<int> turn{0}, warnings{0}, stalled{0};
  auto const errors =
      run_store_ranks(3,
                      [&](launch::World& world) {
                        world.warn = [&](std::string const&) { ++warnings; };
                        comm::StoreCommunicator c(world);
                        CollectiveOperation barrier{.collective = comm::Collective::barrier};
                        while (turn < world.rank) std::this_thread::yield();
                        while (world.rank == 2 && stalled < 2) std::this_thread::yield();
                        if (world.rank == 2) return;
                        c.start(barrier);
                        (void)world.store->add("started", 1);  // so the server knows of this rank's part
                        ++turn;
                        while (turn < 2) std::this_thread::yield();
                        try {
                          c.finish();
                        } catch (lockstep::CommunicationError const&) {
                          ++stalled;
                          throw;
                        }
                      },
                      {.warn_seconds = 0.05, .stall_seconds = 1.2});
  for (int const rank : {0, 1})
    CHECK_THROWS_AS(std::rethrow_exception(errors[static_cast<std::size_t>(rank)]), lockstep::RankStalled);
  CHECK(warnings == 1);
}

namespace {

/// Accepts one rank, and sends nothing else.
class StandingStore {
 public:
  enum class Takes { all, nothing };
  explicit StandingStore(Takes takes = Takes::all)
      : listening_socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(::listen(listening_socket_.get(), 1) == 0);  // on a port that the system chooses
    thread_ = std::thread([this, takes] {
      FileDescriptor const client(::accept(listening_socket_.get(), nullptr, nullptr));
      auto const acceptance = launch::detail::store_message(static_cast<std::uint8_t>(launch::detail::StoreReply::done),
                                                            {}, launch::detail::StoreHandshake::acceptance());
      (void)::send(client.get(), acceptance.data(), acceptance.size(), MSG_NOSIGNAL);
      while (takes == Takes::nothing && !over_) ::usleep(1000);
      char all[4096];
      while (::recv(client.get(), all, sizeof all, 0) > 0) continue;
    });
  }
  ~StandingStore() {
    over_ = true;
    thread_.join();
  }

  /// Rank 1 of two, which it accepted.
  [[nodiscard]] launch::World world(double silence_seconds) const {
    sockaddr_in6 name{};
    socklen_t bytes = sizeof name;
    REQUIRE(::getsockname(listening_socket_.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
    launch::World out{.rank = 1, .size = 2, .engine = launch::Engine::store};
    out.limits = {.warn_seconds = 0.05, .stall_seconds = 0.5};
    out.segment = launch::SharedSegment::between_threads(2, 7);
    out.store = std::make_shared<launch::Store>(launch::Store::Options{.port = ntohs(name.sin6_port),
                                                                       .job = 7,
                                                                       .rank = 1,
                                                                       .size = 2,
                                                                       .wait_seconds = 0.5,
                                                                       .silence_seconds = silence_seconds});
    return out;
  }

 private:
  FileDescriptor listening_socket_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a stopped store counts as the first rank: a warning, then an error at the limit") {
  StandingStore const store;
  auto world = store.world(0.2);
  std::string warning;
  world.warn = [&](std::string const& text) { warning += text; };
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
  try {
    c.barrier();
    FAIL("no rank was missing");
  } catch (lockstep::RankStalled const& error) {
    CHECK(error.rank() == 0);
    CHECK(std::string(error.what()).find("(barrier) for rank 0. The limit is over") != std::string::npos);
  }
  CHECK(warning.find("(barrier) for rank 0; still waiting") != std::string::npos);
}

TEST_CASE("a stopped store counts as the first rank, also for a rank that sends more than it reads") {
  StandingStore const store(StandingStore::Takes::nothing);
  auto world = store.world(0.2);
  std::string warning;
  world.warn = [&](std::string const& text) { warning += text; };
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
  std::vector<float> gradients(std::size_t{1} << 24);
  std::vector<comm::CollectiveOperation> operations;
  for (std::size_t i = 0; i < 64; ++i)
    operations.push_back(
        {lockstep::ElementType::float32, gradients.data() + (i << 18), 1 << 18, comm::Reduction::sum, {}});
  try {
    for (auto& operation : operations) c.start(operation);
    c.finish();
    FAIL("no rank was missing");
  } catch (lockstep::RankStalled const& error) {
    CHECK(error.rank() == 0);
    CHECK(std::string(error.what())
              .find("in operation 0 (all_reduce of 262144 float32 (sum, 0 piggybacked scalars)) for rank 0. "
                    "The limit is over") != std::string::npos);
  }
  CHECK(warning.find("for rank 0; still waiting") != std::string::npos);
}

TEST_CASE("a lost rank is reported at once, also during a query for missing ranks") {
  StandingStore const store;
  auto world = store.world(30);
  std::string warning;
  world.warn = [&](std::string const& text) { warning += text; };
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
  std::thread news([&] {
    ::usleep(300'000);
    world.segment->control().mark_lost(0);
  });
  auto const began = lockstep::Clock::seconds();
  CHECK_THROWS_AS(c.barrier(), lockstep::RankLost);
  CHECK(lockstep::Clock::seconds() - began < 10);
  CHECK(warning.empty());
  news.join();
}

TEST_CASE("a rank missing in a group is named by its rank in the run") {
  std::atomic<bool> given_up{false};
  std::string warning;
  auto const errors = run_store_ranks(3,
                                      [&](launch::World& world) {
                                        world.warn = [&](std::string const& text) { warning += text; };
                                        comm::AnyCommunicator c(comm::StoreCommunicator{world});
                                        stay_away(c, given_up);
                                      },
                                      {.warn_seconds = 0.05, .stall_seconds = 0.2});
  try {
    REQUIRE(errors[1]);
    std::rethrow_exception(errors[1]);
  } catch (lockstep::RankStalled const& error) {
    CHECK(error.rank() == 2);
    CHECK(what_of(errors[1]).find("(barrier) for rank 2") != std::string::npos);
  }
  CHECK(warning.find("for rank 2; still waiting") != std::string::npos);  // the group's first rank reports
}

TEST_CASE("an unreachable store is explained by the lost rank; one that has ended is waited for a while") {
  for (bool const unreachable : {true, false}) {
    CAPTURE(unreachable);
    auto const errors = run_store_ranks(2, [&](launch::World& world) {
      if (world.rank == 1) return world.store.reset();
      comm::AnyCommunicator c(comm::StoreCommunicator{world});
      auto& control = world.segment->control();
      if (!unreachable) control.end(1, 0);
      if (unreachable) ::shutdown(world.store->descriptor(), SHUT_RDWR);
      std::thread news([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (unreachable) control.mark_lost(1);
      });
      try {
        c.barrier();
      } catch (...) {
        news.join();
        throw;
      }
      news.join();
    });
    REQUIRE(errors[0]);
    CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankLost);
    CHECK(what_of(errors[0]).find(unreachable ? "has lost the store" : "has ended its work") != std::string::npos);
  }
}
