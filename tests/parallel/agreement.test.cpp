// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/agreement.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>

using namespace lockstep;

namespace {
/// Compares the entries of `fill(agreement, rank)` over `ranks` thread ranks. @returns how many ranks threw
template <class Fill>
std::string messages_of_all(int ranks, Fill fill) {
  launch::Options options;
  options.threads = ranks;
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    parallel::Agreement agreement;
    fill(agreement, world.rank);
    try {
      agreement.check(communicator);
    } catch (CollectiveMismatch const& error) {
      messages[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  for (auto const& each : messages) CHECK(each == messages[0]);
  return messages[0];
}
}  // namespace

TEST_CASE("ranks that agree continue, whatever the fields") {
  for (int ranks : {1, 2, 3}) {
    CHECK(messages_of_all(ranks, [](parallel::Agreement&, int) {}) == "");
    CHECK(messages_of_all(ranks, [](parallel::Agreement& a, int) {
            a.add("seed", Index{1});
            a.add("rate", 0.1);
            a.add("name", "x");
          }) == "");
  }
}

TEST_CASE("all ranks get the first differing field with its rank and both values") {
  auto const messages = messages_of_all(4, [](parallel::Agreement& a, int rank) {
    a.add("seed", Index{7});
    a.add("rate", rank == 2 ? 0.25 : 0.5);
    a.add("name", rank == 3 ? "y" : "x");
  });
  CHECK(messages.starts_with("rank 2 has rate = 0.25, but rank 0 has rate = 0.5; start all ranks"));
}

TEST_CASE("fields of only one rank are reported as well, on any rank") {
  auto const more = [](int which) {
    return [which](parallel::Agreement& a, int rank) {
      a.add("seed", Index{7});
      if (rank == which) a.add("name", "x");
    };
  };
  CHECK(messages_of_all(2, more(1)).starts_with("rank 1 has name = x, but rank 0 has nothing more;"));
  CHECK(messages_of_all(2, more(0)).starts_with("rank 1 has nothing more, but rank 0 has name = x;"));
  CHECK(messages_of_all(2, [](parallel::Agreement& a, int rank) {
          a.add(rank == 0 ? "a" : "b", Index{1});
        }).starts_with("rank 1 has b = 1, but rank 0 has a = 1;"));
}

TEST_CASE("fields are not confused by concatenation, and numbers are compared to the last bit") {
  CHECK(messages_of_all(2, [](parallel::Agreement& a, int rank) { rank == 0 ? a.add("ab", "c") : a.add("a", "bc"); }) !=
        "");
  CHECK(messages_of_all(2, [](parallel::Agreement& a, int rank) { a.add("x", rank == 0 ? 0.1 : 0.1 + 0x1p-56); }) !=
        "");
}

TEST_CASE("the error ends with the remedy of the field that differs") {
  auto const differs = [](char const* field) {
    return messages_of_all(3, [field](parallel::Agreement& a, int rank) {
      auto const add = [&](char const* name) { a.add(name, rank == 2 && name == std::string_view(field) ? "y" : "x"); };
      add("a");
      a.set_remedy("sort");
      add("b");
      a.set_remedy("wait");
      add("c");
    });
  };
  CHECK(differs("a").starts_with("rank 2 has a = y, but rank 0 has a = x; start all ranks"));
  CHECK(differs("b") == "rank 2 has b = y, but rank 0 has b = x; sort");
  CHECK(differs("c") == "rank 2 has c = y, but rank 0 has c = x; wait");
  auto const more = messages_of_all(2, [](parallel::Agreement& a, int rank) {
    if (rank == 1) a.add("a", "x");
    a.set_remedy("sort");
    a.add("b", "x");
  });
  CHECK(more.starts_with("rank 1 has a = x, but rank 0 has b = x; start all ranks"));
}
