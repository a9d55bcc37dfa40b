// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/work.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <type_traits>

using namespace lockstep;

namespace {

/// Completes an operation at the second query, or fails.
struct Slow {
  int asked = 0;
  bool fails = false;
  bool cannot = false;
  bool warns = false;
  comm::CollectiveOperation* under_way = nullptr;

  int rank() const { return 0; }
  int size() const { return 1; }
  char const* name() const { return "slow"; }
  memory::Block allocate(std::size_t) { return {}; }
  void start(comm::CollectiveOperation& operation) { under_way = &operation; }
  void progress() {
    if (++asked == 2) under_way->finished_seconds = 1;
  }
  void wait(comm::CollectiveOperation const& operation) {
    if (fails) throw CollectiveMismatch("no");
    if (cannot) throw ConfigError("not this");
    if (warns) throw std::runtime_error("of the function for warnings");
    while (!operation.complete()) progress();
  }
  void finish() {}
  Slow split(int, int) { return *this; }
};

}  // namespace

TEST_CASE("queries make progress until the operation is complete, and not afterwards") {
  Slow slow;
  comm::Work work(slow, {});
  CHECK_FALSE(work.done());
  CHECK(work.done());
  CHECK(work.done());
  work.wait();
  CHECK(slow.asked == 2);
}

TEST_CASE("its destructor waits") {
  Slow slow;
  { comm::Work const work(slow, {}); }
  CHECK(slow.asked == 2);
}

TEST_CASE("an error is thrown by wait, not by the destructor") {
  Slow slow{.fails = true};
  {
    comm::Work const work(slow, {});
    CHECK_THROWS_AS(work.wait(), CollectiveMismatch);
  }
  CHECK(slow.asked == 0);
}

TEST_CASE("no error of any kind leaves the destructor") {
  Slow slow{.cannot = true};
  {
    comm::Work const work(slow, {});
    CHECK_THROWS_AS(work.wait(), ConfigError);
  }
  CHECK(slow.asked == 0);
  Slow warning{.warns = true};
  {
    comm::Work const work(warning, {});
    CHECK_THROWS_AS(work.wait(), std::runtime_error);
  }
  CHECK(warning.asked == 0);
}

TEST_CASE("it can be neither moved nor copied") {
  CHECK_FALSE(std::is_move_constructible_v<comm::Work<Slow>>);
  CHECK_FALSE(std::is_copy_constructible_v<comm::Work<Slow>>);
}
