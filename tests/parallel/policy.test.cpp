// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy.hpp>

#include <cstdlib>
#include <utility>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct NoShards {
  int first_shard() { return 0; }
  int all_shards() { return 1; }
};
struct NoName : NoShards {
  int shards() { return 1; }
  int threads_each() { return 1; }
  parallel::Place place(int) { return {}; }
};
struct Whole : NoName {
  char const* name() { return "whole"; }
  char const* engine() { return "self"; }
};
}  // namespace

TEST_CASE("threads per device are the requested ones, else an equal share of the cores and at least one") {
  CHECK(parallel::threads_per_device(3, 2) == 3);
  CHECK(parallel::threads_per_device(0, 1) >= 1);
  CHECK(parallel::threads_per_device(0, 1'000'000) == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(parallel::threads_per_device(-1, 2)),
                       "parallel policy: threads is -1; it must be at least 0, and 0 shares the cores equally",
                       ConfigError);
}

TEST_CASE("ranks divide the cores of their own host") {
  auto const cores = parallel::threads_per_rank(0, 1);
  CHECK(parallel::threads_per_rank(0, 2) == std::max(1, cores / 2));  // without further variables: they are threads
  CHECK(parallel::threads_per_rank(3, 2) == 3);
  for (auto const& [name, value] : {std::pair{"RANK", "5"}, std::pair{"WORLD_SIZE", "1000"},
                                    std::pair{"LOCAL_RANK", "0"}, std::pair{"LOCAL_WORLD_SIZE", "1"}})
    REQUIRE(::setenv(name, value, 1) == 0);
  CHECK(parallel::threads_per_rank(0, 1000) == cores);  // torchrun says that this one is alone on its host
  for (auto const* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) ::unsetenv(name);
}

TEST_CASE("a policy has its shards, places and names") {
  CHECK_FALSE(parallel::ParallelPolicy<NoShards>);
  CHECK_FALSE(parallel::ParallelPolicy<NoName>);
  CHECK(parallel::ParallelPolicy<Whole>);
}
