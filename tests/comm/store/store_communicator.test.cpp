#include <lockstep/core/file_descriptor.hpp>
// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/store/store_communicator.hpp>
#include <lockstep/core/file_descriptor.hpp>

#include <doctest/doctest.h>
#include <lockstep/core/file_descriptor.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <lockstep/core/file_descriptor.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <lockstep/core/file_descriptor.hpp>

#include "comm/faults.hpp"
#include "comm/operations.hpp"
#include "comm/store_ranks.hpp"
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
using namespace lockstep_test;
#include <lockstep/core/file_descriptor.hpp>
using lockstep::FileDescriptor;
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
namespace {
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
template <class Body>
#include <lockstep/core/file_descriptor.hpp>
void all_agree(int n, Body const& body) {
#include <lockstep/core/file_descriptor.hpp>
  for (auto const& error : run_store_ranks(n, body)) CHECK_NOTHROW(error ? std::rethrow_exception(error) : void());
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>
std::string what_of(std::exception_ptr const& error) {
#include <lockstep/core/file_descriptor.hpp>
  try {
#include <lockstep/core/file_descriptor.hpp>
    if (error) std::rethrow_exception(error);
#include <lockstep/core/file_descriptor.hpp>
  } catch (std::exception const& it) {
#include <lockstep/core/file_descriptor.hpp>
    return it.what();
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  return "";
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
}  // namespace
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("a store has the properties of every engine, for 1 to 4 ranks") {
#include <lockstep/core/file_descriptor.hpp>
  for (int n = 1; n <= 4; ++n) {
#include <lockstep/core/file_descriptor.hpp>
    CAPTURE(n);
#include <lockstep/core/file_descriptor.hpp>
    all_agree(n, [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
      comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
      require(c.rank() == world.rank && c.size() == world.size && std::string(c.name()) == "store", "place and name");
#include <lockstep/core/file_descriptor.hpp>
      pieces_are_started_again(c);
#include <lockstep/core/file_descriptor.hpp>
      max_spreads_nan(c);
#include <lockstep/core/file_descriptor.hpp>
      impossible_pieces_are_refused(c);
#include <lockstep/core/file_descriptor.hpp>
      if (world.size == 3) bytes_move(c);
#include <lockstep/core/file_descriptor.hpp>
      std::uint64_t salt = 0;
#include <lockstep/core/file_descriptor.hpp>
      for (Index const count : {0, 1, 33, 1025, 300001})  // the last one in several chunks
#include <lockstep/core/file_descriptor.hpp>
        for (std::size_t const scalars : {0U, 16U}) {
#include <lockstep/core/file_descriptor.hpp>
          Case<float> one(c, Memory::own, count, 1, scalars, ++salt);
#include <lockstep/core/file_descriptor.hpp>
          c.start(one.operation());
#include <lockstep/core/file_descriptor.hpp>
          c.finish();
#include <lockstep/core/file_descriptor.hpp>
          one.check("sum");
#include <lockstep/core/file_descriptor.hpp>
        }
#include <lockstep/core/file_descriptor.hpp>
    });
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("operations may all be in progress at once, and complete in order") {
#include <lockstep/core/file_descriptor.hpp>
  all_agree(3, [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
    comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
    std::vector<std::unique_ptr<Case<double>>> cases;
#include <lockstep/core/file_descriptor.hpp>
    for (std::uint64_t i = 0; i < 40; ++i)
#include <lockstep/core/file_descriptor.hpp>
      cases.push_back(std::make_unique<Case<double>>(c, Memory::own, static_cast<Index>(i * 37), 0, i % 17, i));
#include <lockstep/core/file_descriptor.hpp>
    for (auto& one : cases) c.start(one->operation());
#include <lockstep/core/file_descriptor.hpp>
    c.finish();
#include <lockstep/core/file_descriptor.hpp>
    for (auto const& one : cases) one->check("under way");
#include <lockstep/core/file_descriptor.hpp>
  });
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("every operation over a store, and on its splits") {
#include <lockstep/core/file_descriptor.hpp>
  all_agree(4, [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
    comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
    has_every_operation(c);
#include <lockstep/core/file_descriptor.hpp>
  });
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("ranks that call another operation, are missing or are gone are named") {
#include <lockstep/core/file_descriptor.hpp>
  auto errors = run_store_ranks(3, [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
    comm::StoreCommunicator c(world);
#include <lockstep/core/file_descriptor.hpp>
    std::vector<float> x(static_cast<std::size_t>(world.rank == 2 ? 5 : 4));
#include <lockstep/core/file_descriptor.hpp>
    CollectiveOperation operation{ElementType::float32, x.data(), std::ssize(x), comm::Reduction::sum, {}};
#include <lockstep/core/file_descriptor.hpp>
    c.start(operation);
#include <lockstep/core/file_descriptor.hpp>
    c.finish();
#include <lockstep/core/file_descriptor.hpp>
  });
#include <lockstep/core/file_descriptor.hpp>
  for (auto const& error : errors) {
#include <lockstep/core/file_descriptor.hpp>
    CHECK_THROWS_AS(std::rethrow_exception(error), lockstep::CollectiveMismatch);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(what_of(error).find("all_reduce of 5 float32") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(what_of(error).find("all_reduce of 4 float32") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  errors = run_store_ranks(3,
#include <lockstep/core/file_descriptor.hpp>
                           [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
                             comm::StoreCommunicator c(world);
#include <lockstep/core/file_descriptor.hpp>
                             if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
#include <lockstep/core/file_descriptor.hpp>
                             if (world.rank != 1) comm::AnyCommunicator(std::move(c)).barrier();
#include <lockstep/core/file_descriptor.hpp>
                           },
#include <lockstep/core/file_descriptor.hpp>
                           {.warn_seconds = 60, .stall_seconds = 0.1});
#include <lockstep/core/file_descriptor.hpp>
  CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankStalled);
#include <lockstep/core/file_descriptor.hpp>
  CHECK(what_of(errors[2]).find("s in operation 0 (barrier) for rank 1") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  errors = run_store_ranks(2, [](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
    if (world.rank == 1) return world.store.reset();
#include <lockstep/core/file_descriptor.hpp>
    world.segment->control().mark_lost(1);  // as the news would report it
#include <lockstep/core/file_descriptor.hpp>
    comm::AnyCommunicator(comm::StoreCommunicator(world)).barrier();
#include <lockstep/core/file_descriptor.hpp>
  });
#include <lockstep/core/file_descriptor.hpp>
  CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankLost);
#include <lockstep/core/file_descriptor.hpp>
  launch::World alone;
#include <lockstep/core/file_descriptor.hpp>
  CHECK_THROWS_WITH_AS(comm::StoreCommunicator{alone}, doctest::Contains("engine 'self'"), lockstep::ConfigError);
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("one rank warns for all that wait") {
#include <lockstep/core/file_descriptor.hpp>
  std::atomic<int> turn{0}, warnings{0}, stalled{0};
#include <lockstep/core/file_descriptor.hpp>
  auto const errors =
#include <lockstep/core/file_descriptor.hpp>
      run_store_ranks(3,
#include <lockstep/core/file_descriptor.hpp>
                      [&](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
                        world.warn = [&](std::string const&) { ++warnings; };
#include <lockstep/core/file_descriptor.hpp>
                        comm::StoreCommunicator c(world);
#include <lockstep/core/file_descriptor.hpp>
                        CollectiveOperation barrier{.collective = comm::Collective::barrier};
#include <lockstep/core/file_descriptor.hpp>
                        while (turn < world.rank) std::this_thread::yield();
#include <lockstep/core/file_descriptor.hpp>
                        while (world.rank == 2 && stalled < 2) std::this_thread::yield();
#include <lockstep/core/file_descriptor.hpp>
                        if (world.rank == 2) return;
#include <lockstep/core/file_descriptor.hpp>
                        c.start(barrier);
#include <lockstep/core/file_descriptor.hpp>
                        (void)world.store->add("started", 1);  // so the server knows of this rank's part
#include <lockstep/core/file_descriptor.hpp>
                        ++turn;
#include <lockstep/core/file_descriptor.hpp>
                        while (turn < 2) std::this_thread::yield();
#include <lockstep/core/file_descriptor.hpp>
                        try {
#include <lockstep/core/file_descriptor.hpp>
                          c.finish();
#include <lockstep/core/file_descriptor.hpp>
                        } catch (lockstep::CommunicationError const&) {
#include <lockstep/core/file_descriptor.hpp>
                          ++stalled;
#include <lockstep/core/file_descriptor.hpp>
                          throw;
#include <lockstep/core/file_descriptor.hpp>
                        }
#include <lockstep/core/file_descriptor.hpp>
                      },
#include <lockstep/core/file_descriptor.hpp>
                      {.warn_seconds = 0.05, .stall_seconds = 1.2});
#include <lockstep/core/file_descriptor.hpp>
  for (int const rank : {0, 1})
#include <lockstep/core/file_descriptor.hpp>
    CHECK_THROWS_AS(std::rethrow_exception(errors[static_cast<std::size_t>(rank)]), lockstep::RankStalled);
#include <lockstep/core/file_descriptor.hpp>
  CHECK(warnings == 1);
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
namespace {
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
/// Accepts one rank, and sends nothing else.
#include <lockstep/core/file_descriptor.hpp>
class StandingStore {
#include <lockstep/core/file_descriptor.hpp>
 public:
#include <lockstep/core/file_descriptor.hpp>
  enum class Takes { all, nothing };
#include <lockstep/core/file_descriptor.hpp>
  explicit StandingStore(Takes takes = Takes::all)
#include <lockstep/core/file_descriptor.hpp>
      : listening_socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
#include <lockstep/core/file_descriptor.hpp>
    REQUIRE(::listen(listening_socket_.get(), 1) == 0);  // on a port that the system chooses
#include <lockstep/core/file_descriptor.hpp>
    thread_ = std::thread([this, takes] {
#include <lockstep/core/file_descriptor.hpp>
      FileDescriptor const client(::accept(listening_socket_.get(), nullptr, nullptr));
#include <lockstep/core/file_descriptor.hpp>
      auto const acceptance = launch::detail::store_message(static_cast<std::uint8_t>(launch::detail::StoreReply::done),
#include <lockstep/core/file_descriptor.hpp>
                                                            {}, launch::detail::StoreHandshake::acceptance());
#include <lockstep/core/file_descriptor.hpp>
      (void)::send(client.get(), acceptance.data(), acceptance.size(), MSG_NOSIGNAL);
#include <lockstep/core/file_descriptor.hpp>
      while (takes == Takes::nothing && !over_) ::usleep(1000);
#include <lockstep/core/file_descriptor.hpp>
      char all[4096];
#include <lockstep/core/file_descriptor.hpp>
      while (::recv(client.get(), all, sizeof all, 0) > 0) continue;
#include <lockstep/core/file_descriptor.hpp>
    });
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  ~StandingStore() {
#include <lockstep/core/file_descriptor.hpp>
    over_ = true;
#include <lockstep/core/file_descriptor.hpp>
    thread_.join();
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
  /// Rank 1 of two, which it accepted.
#include <lockstep/core/file_descriptor.hpp>
  [[nodiscard]] launch::World world(double silence_seconds) const {
#include <lockstep/core/file_descriptor.hpp>
    sockaddr_in6 name{};
#include <lockstep/core/file_descriptor.hpp>
    socklen_t bytes = sizeof name;
#include <lockstep/core/file_descriptor.hpp>
    REQUIRE(::getsockname(listening_socket_.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
#include <lockstep/core/file_descriptor.hpp>
    launch::World out{.rank = 1, .size = 2, .engine = launch::Engine::store};
#include <lockstep/core/file_descriptor.hpp>
    out.limits = {.warn_seconds = 0.05, .stall_seconds = 0.5};
#include <lockstep/core/file_descriptor.hpp>
    out.segment = launch::SharedSegment::between_threads(2, 7);
#include <lockstep/core/file_descriptor.hpp>
    out.store = std::make_shared<launch::Store>(launch::Store::Options{.port = ntohs(name.sin6_port),
#include <lockstep/core/file_descriptor.hpp>
                                                                       .job = 7,
#include <lockstep/core/file_descriptor.hpp>
                                                                       .rank = 1,
#include <lockstep/core/file_descriptor.hpp>
                                                                       .size = 2,
#include <lockstep/core/file_descriptor.hpp>
                                                                       .wait_seconds = 0.5,
#include <lockstep/core/file_descriptor.hpp>
                                                                       .silence_seconds = silence_seconds});
#include <lockstep/core/file_descriptor.hpp>
    return out;
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
 private:
#include <lockstep/core/file_descriptor.hpp>
  FileDescriptor listening_socket_;
#include <lockstep/core/file_descriptor.hpp>
  std::atomic<bool> over_ = false;
#include <lockstep/core/file_descriptor.hpp>
  std::thread thread_;
#include <lockstep/core/file_descriptor.hpp>
};
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
}  // namespace
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("a stopped store counts as the first rank: a warning, then an error at the limit") {
#include <lockstep/core/file_descriptor.hpp>
  StandingStore const store;
#include <lockstep/core/file_descriptor.hpp>
  auto world = store.world(0.2);
#include <lockstep/core/file_descriptor.hpp>
  std::string warning;
#include <lockstep/core/file_descriptor.hpp>
  world.warn = [&](std::string const& text) { warning += text; };
#include <lockstep/core/file_descriptor.hpp>
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
  try {
#include <lockstep/core/file_descriptor.hpp>
    c.barrier();
#include <lockstep/core/file_descriptor.hpp>
    FAIL("no rank was missing");
#include <lockstep/core/file_descriptor.hpp>
  } catch (lockstep::RankStalled const& error) {
#include <lockstep/core/file_descriptor.hpp>
    CHECK(error.rank() == 0);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(std::string(error.what()).find("(barrier) for rank 0. The limit is over") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  CHECK(warning.find("(barrier) for rank 0; still waiting") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("a stopped store counts as the first rank, also for a rank that sends more than it reads") {
#include <lockstep/core/file_descriptor.hpp>
  StandingStore const store(StandingStore::Takes::nothing);
#include <lockstep/core/file_descriptor.hpp>
  auto world = store.world(0.2);
#include <lockstep/core/file_descriptor.hpp>
  std::string warning;
#include <lockstep/core/file_descriptor.hpp>
  world.warn = [&](std::string const& text) { warning += text; };
#include <lockstep/core/file_descriptor.hpp>
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
  std::vector<float> gradients(std::size_t{1} << 24);
#include <lockstep/core/file_descriptor.hpp>
  std::vector<comm::CollectiveOperation> operations;
#include <lockstep/core/file_descriptor.hpp>
  for (std::size_t i = 0; i < 64; ++i)
#include <lockstep/core/file_descriptor.hpp>
    operations.push_back(
#include <lockstep/core/file_descriptor.hpp>
        {lockstep::ElementType::float32, gradients.data() + (i << 18), 1 << 18, comm::Reduction::sum, {}});
#include <lockstep/core/file_descriptor.hpp>
  try {
#include <lockstep/core/file_descriptor.hpp>
    for (auto& operation : operations) c.start(operation);
#include <lockstep/core/file_descriptor.hpp>
    c.finish();
#include <lockstep/core/file_descriptor.hpp>
    FAIL("no rank was missing");
#include <lockstep/core/file_descriptor.hpp>
  } catch (lockstep::RankStalled const& error) {
#include <lockstep/core/file_descriptor.hpp>
    CHECK(error.rank() == 0);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(std::string(error.what())
#include <lockstep/core/file_descriptor.hpp>
              .find("in operation 0 (all_reduce of 262144 float32 (sum, 0 piggybacked scalars)) for rank 0. "
#include <lockstep/core/file_descriptor.hpp>
                    "The limit is over") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  CHECK(warning.find("for rank 0; still waiting") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("a lost rank is reported at once, also during a query for missing ranks") {
#include <lockstep/core/file_descriptor.hpp>
  StandingStore const store;
#include <lockstep/core/file_descriptor.hpp>
  auto world = store.world(30);
#include <lockstep/core/file_descriptor.hpp>
  std::string warning;
#include <lockstep/core/file_descriptor.hpp>
  world.warn = [&](std::string const& text) { warning += text; };
#include <lockstep/core/file_descriptor.hpp>
  comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
  std::thread news([&] {
#include <lockstep/core/file_descriptor.hpp>
    ::usleep(300'000);
#include <lockstep/core/file_descriptor.hpp>
    world.segment->control().mark_lost(0);
#include <lockstep/core/file_descriptor.hpp>
  });
#include <lockstep/core/file_descriptor.hpp>
  auto const began = lockstep::Clock::seconds();
#include <lockstep/core/file_descriptor.hpp>
  CHECK_THROWS_AS(c.barrier(), lockstep::RankLost);
#include <lockstep/core/file_descriptor.hpp>
  CHECK(lockstep::Clock::seconds() - began < 10);
#include <lockstep/core/file_descriptor.hpp>
  CHECK(warning.empty());
#include <lockstep/core/file_descriptor.hpp>
  news.join();
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("a rank missing in a group is named by its rank in the run") {
#include <lockstep/core/file_descriptor.hpp>
  std::atomic<bool> given_up{false};
#include <lockstep/core/file_descriptor.hpp>
  std::string warning;
#include <lockstep/core/file_descriptor.hpp>
  auto const errors = run_store_ranks(3,
#include <lockstep/core/file_descriptor.hpp>
                                      [&](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
                                        world.warn = [&](std::string const& text) { warning += text; };
#include <lockstep/core/file_descriptor.hpp>
                                        comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
                                        stay_away(c, given_up);
#include <lockstep/core/file_descriptor.hpp>
                                      },
#include <lockstep/core/file_descriptor.hpp>
                                      {.warn_seconds = 0.05, .stall_seconds = 0.2});
#include <lockstep/core/file_descriptor.hpp>
  try {
#include <lockstep/core/file_descriptor.hpp>
    REQUIRE(errors[1]);
#include <lockstep/core/file_descriptor.hpp>
    std::rethrow_exception(errors[1]);
#include <lockstep/core/file_descriptor.hpp>
  } catch (lockstep::RankStalled const& error) {
#include <lockstep/core/file_descriptor.hpp>
    CHECK(error.rank() == 2);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(what_of(errors[1]).find("(barrier) for rank 2") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
  CHECK(warning.find("for rank 2; still waiting") != std::string::npos);  // the group's first rank reports
#include <lockstep/core/file_descriptor.hpp>
}
#include <lockstep/core/file_descriptor.hpp>

#include <lockstep/core/file_descriptor.hpp>
TEST_CASE("an unreachable store is explained by the lost rank; one that has ended is waited for a while") {
#include <lockstep/core/file_descriptor.hpp>
  for (bool const unreachable : {true, false}) {
#include <lockstep/core/file_descriptor.hpp>
    CAPTURE(unreachable);
#include <lockstep/core/file_descriptor.hpp>
    auto const errors = run_store_ranks(2, [&](launch::World& world) {
#include <lockstep/core/file_descriptor.hpp>
      if (world.rank == 1) return world.store.reset();
#include <lockstep/core/file_descriptor.hpp>
      comm::AnyCommunicator c(comm::StoreCommunicator{world});
#include <lockstep/core/file_descriptor.hpp>
      auto& control = world.segment->control();
#include <lockstep/core/file_descriptor.hpp>
      if (!unreachable) control.end(1, 0);
#include <lockstep/core/file_descriptor.hpp>
      if (unreachable) ::shutdown(world.store->descriptor(), SHUT_RDWR);
#include <lockstep/core/file_descriptor.hpp>
      std::thread news([&] {
#include <lockstep/core/file_descriptor.hpp>
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
#include <lockstep/core/file_descriptor.hpp>
        if (unreachable) control.mark_lost(1);
#include <lockstep/core/file_descriptor.hpp>
      });
#include <lockstep/core/file_descriptor.hpp>
      try {
#include <lockstep/core/file_descriptor.hpp>
        c.barrier();
#include <lockstep/core/file_descriptor.hpp>
      } catch (...) {
#include <lockstep/core/file_descriptor.hpp>
        news.join();
#include <lockstep/core/file_descriptor.hpp>
        throw;
#include <lockstep/core/file_descriptor.hpp>
      }
#include <lockstep/core/file_descriptor.hpp>
      news.join();
#include <lockstep/core/file_descriptor.hpp>
    });
#include <lockstep/core/file_descriptor.hpp>
    REQUIRE(errors[0]);
#include <lockstep/core/file_descriptor.hpp>
    CHECK_THROWS_AS(std::rethrow_exception(errors[0]), lockstep::RankLost);
#include <lockstep/core/file_descriptor.hpp>
    CHECK(what_of(errors[0]).find(unreachable ? "has lost the store" : "has ended its work") != std::string::npos);
#include <lockstep/core/file_descriptor.hpp>
  }
#include <lockstep/core/file_descriptor.hpp>
}
