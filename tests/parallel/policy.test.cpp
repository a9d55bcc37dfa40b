// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct NoShards {
  int first_shard() { return 0; }
  int all_shards() { return 1; }
};
}  // namespace

TEST_CASE("threads per device are those asked for, else an equal share of the cores and at least one") {
  CHECK(parallel::threads_per_device(3, 2) == 3);
  CHECK(parallel::threads_per_device(0, 1) >= 1);
  CHECK(parallel::threads_per_device(0, 1'000'000) == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(parallel::threads_per_device(-1, 2)),
                       "parallel policy: threads is -1; it must be at least 0, which shares the cores equally",
                       ConfigError);
}

TEST_CASE("a policy says its shards") { CHECK_FALSE(parallel::ParallelPolicy<NoShards>); }
