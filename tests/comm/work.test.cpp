// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/work.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace lockstep;

namespace {

/// Completes a piece when it is asked to the second time, or fails.
struct Slow {
  int asked = 0;
  bool fails = false;
  bool cannot = false;
  comm::Piece* under_way = nullptr;

  int rank() const { return 0; }
  int size() const { return 1; }
  char const* name() const { return "slow"; }
  memory::Block allocate(std::size_t) { return {}; }
  void start(comm::Piece& piece) { under_way = &piece; }
  void progress() {
    if (++asked == 2) under_way->finished_seconds = 1;
  }
  void wait(comm::Piece const& piece) {
    if (fails) throw CollectiveMismatch("no");
    if (cannot) throw ConfigError("not this");
    while (!piece.complete()) progress();
  }
  void finish() {}
  Slow split(int, int) { return *this; }
};

}  // namespace

TEST_CASE("asking makes progress until it is done, and not after") {
  Slow slow;
  comm::Work work(slow, {});
  CHECK_FALSE(work.done());
  CHECK(work.done());
  CHECK(work.done());
  work.wait();
  CHECK(slow.asked == 2);
}

TEST_CASE("its end waits") {
  Slow slow;
  { comm::Work const work(slow, {}); }
  CHECK(slow.asked == 2);
}

TEST_CASE("an error comes out of wait, not out of its end") {
  Slow slow{.fails = true};
  {
    comm::Work const work(slow, {});
    CHECK_THROWS_AS(work.wait(), CollectiveMismatch);
  }
  CHECK(slow.asked == 0);
}

TEST_CASE("no error of any kind comes out of its end") {
  Slow slow{.cannot = true};
  {
    comm::Work const work(slow, {});
    CHECK_THROWS_AS(work.wait(), ConfigError);
  }
  CHECK(slow.asked == 0);
}

TEST_CASE("it stays where it is") {
  CHECK_FALSE(std::is_move_constructible_v<comm::Work<Slow>>);
  CHECK_FALSE(std::is_copy_constructible_v<comm::Work<Slow>>);
}
