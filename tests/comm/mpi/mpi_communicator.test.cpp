// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/mpi/mpi_communicator.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "comm/faults.hpp"
#include "comm/operations.hpp"
#include "launch/ranks.hpp"

using namespace lockstep_test;

namespace {

/// Runs `n` ranks with one of this program's hidden cases under a real mpirun.
int mpirun(int n, std::string const& rank_case) {
  auto const program = std::filesystem::read_symlink("/proc/self/exe").string();
  auto const command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np " +
                       std::to_string(n) + " '" + program + "' '--test-case=" + rank_case +
                       "' --no-skip=true >/dev/null 2>&1";
  auto const status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// The body of a hidden case: errors are written to a file, and end all ranks.
void be_mpi_rank(std::function<void(comm::AnyCommunicator&)> const& body, launch::WaitLimits limits = {},
                 std::function<void(std::string const&)> warn = {}) {
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return;
  MPI_Init(nullptr, nullptr);
  int code = 0;
  try {
    comm::AnyCommunicator c(comm::MpiCommunicator(MPI_COMM_WORLD, limits, std::move(warn)));
    body(c);
  } catch (std::exception const& error) {
    Scratch::write("error", error.what());
    code = 1;
  }
  MPI_Finalize();
  std::_Exit(code);
}

}  // namespace

TEST_CASE("rank: conformance" * doctest::skip()) {
  be_mpi_rank([](comm::AnyCommunicator& c) {
    keeps_its_promises(c);
    has_every_operation(c);
  });
}

TEST_CASE("MPI has the properties of every engine") {
  Scratch const scratch;
  for (int const n : {1, 2, 3, 4}) {
    CAPTURE(n);
    CHECK(mpirun(n, "rank: conformance") == 0);
    CHECK(Scratch::read("error").empty());
  }
}

TEST_CASE("rank: digest" * doctest::skip()) {
  be_mpi_rank([](comm::AnyCommunicator& c) {
    auto const text = digest(c);
    if (c.rank() == 0) Scratch::write("mpi", text);
  });
}

TEST_CASE("threads and MPI give equal bits") {
  Scratch const scratch;
  std::string threads;
  CHECK(launch::run({.threads = 3}, [&](launch::World& world) {
          auto c = comm::connect(world);
          auto const text = digest(c);
          if (world.rank == 0) threads = text;
          return 0;
        }) == 0);
  CHECK(mpirun(3, "rank: digest") == 0);
  CHECK(threads.size() > 100);
  CHECK(threads == Scratch::read("mpi"));
}

TEST_CASE("rank: disagrees" * doctest::skip()) {
  be_mpi_rank([](comm::AnyCommunicator& c) {
    int reported = 0;
    for (int kind = 0; kind <= 8; ++kind) {
      auto group = c.split(0, 0);  // the one that disagreed can no longer be used
      try {
        disagree(group, kind);
      } catch (lockstep::CollectiveMismatch const& error) {
        reported +=
            contains(error.what(), disagreement(kind, false)) && contains(error.what(), disagreement(kind, true));
      }
    }
    require(reported == 9, "every rank hears of every disagreement, with both sides");
  });
}

TEST_CASE("ranks of MPI that disagree all learn it") {
  Scratch const scratch;
  CHECK(mpirun(3, "rank: disagrees") == 0);
  CHECK(Scratch::read("error").empty());
}

TEST_CASE("rank: late" * doctest::skip()) {
  be_mpi_rank(
      [](comm::AnyCommunicator& c) {
        if (c.rank() == 1) {
          while (Scratch::read("stalled").empty()) ::usleep(1000);
          c.barrier();
          return;
        }
        try {
          c.barrier();
          fail("no rank was missing");
        } catch (lockstep::RankStalled const& error) {
          Scratch::write("stalled", error.what());
        }
        std::_Exit(0);  // the launcher ends the other
      },
      {.warn_seconds = 0.05, .stall_seconds = 0.2});
}

TEST_CASE("a rank that waits too long gets an error, without the name of the missing rank") {
  Scratch const scratch;
  (void)mpirun(2, "rank: late");
  CHECK(contains(Scratch::read("stalled"), "in operation 0 (barrier) for another rank; which one is not determined"));
}

TEST_CASE("rank: warns by an exception" * doctest::skip()) {
  be_mpi_rank(
      [](comm::AnyCommunicator& c) {
        if (c.rank() == 1) {
          while (Scratch::read("warned").empty()) ::usleep(1000);
          return;
        }
        std::string errors;
        for (int i = 0; i < 2; ++i) {
          try {
            c.barrier();
          } catch (lockstep::ConfigError const& error) {
            errors += error.what();
          }
        }
        Scratch::write("warned", errors);
        std::_Exit(0);  // the launcher ends the other
      },
      {.warn_seconds = 0.05, .stall_seconds = 2},
      [warnings = 0](std::string const&) mutable {
        throw lockstep::ConfigError("warning " + std::to_string(++warnings) + "; ");
      });
}

TEST_CASE("an exception of the function for warnings ends the operation and all later ones over MPI") {
  Scratch const scratch;
  (void)mpirun(2, "rank: warns by an exception");
  CHECK(Scratch::read("warned") == "warning 1; warning 1; ");
  CHECK(Scratch::read("error").empty());
}

TEST_CASE("rank: gives up an operation" * doctest::skip()) {
  be_mpi_rank(
      [](comm::AnyCommunicator& c) {
        auto const sum_up = [&] {
          auto group = c.split(0, 0);
          if (c.rank() == 1) {
            while (Scratch::read("given up").empty()) ::usleep(1000);
          }
          auto const memory = group.allocate(4000);
          auto const sum = comm::all_reduce(group, std::span(reinterpret_cast<float*>(memory.data()), 1000));
          CHECK_THROWS_AS(sum.wait(), lockstep::RankStalled);
        };
        sum_up();
        if (c.rank() == 1) {
          Scratch::write("tried", "yes");
          for (;;) ::pause();  // the launcher ends this process
        }
        std::vector<std::vector<unsigned char>> reused;  // takes memory that was freed
        for (std::size_t bytes = 16; bytes < 16384; bytes += 16) reused.emplace_back(bytes, 0xAA);
        Scratch::write("given up", "yes");
        while (Scratch::read("tried").empty()) {
          int arrived = 0;
          MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
          ::usleep(1000);
        }
        for (auto const& bytes : reused)
          for (auto const byte : bytes)
            if (byte != 0xAA) Scratch::write("error", "MPI wrote into freed memory");
        Scratch::write("checked", "yes");
        std::_Exit(1);
      },
      {.warn_seconds = 0.05, .stall_seconds = 0.2});
}

TEST_CASE("after an error MPI writes into no freed memory") {
  Scratch const scratch;
  (void)mpirun(2, "rank: gives up an operation");
  CHECK(Scratch::read("checked") == "yes");
  CHECK(Scratch::read("error").empty());
}
