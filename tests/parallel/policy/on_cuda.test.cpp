// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy/on_cuda.hpp>

#include <doctest/doctest.h>

#include <array>
#include <type_traits>

#include "three_gpus.hpp"

using namespace lockstep;

namespace {
struct Two {  // the third and fourth shard of eight
  int devices = 2;
  static int shards() { return 2; }
  static int first_shard() { return 2; }
  static int all_shards() { return 8; }
  static int threads_each() { return 5; }
  static parallel::Place place(int) { return {.threads = 5}; }
  static char const* name() { return "two"; }
  static char const* engine() { return "self"; }
  template <class Model, class Optimizer, class Space>
  struct Session {
    using Where = Space;
  };
};
}  // namespace

TEST_CASE("the policy keeps its type") {
  parallel::OnCuda const policy{Two{.devices = 7}};
  static_assert(parallel::ParallelPolicy<parallel::OnCuda<Two>>);
  CHECK(policy.devices == 7);
  CHECK(policy.first_shard() == 2);
  static_assert(std::is_same_v<parallel::OnCuda<Two>::Session<int, int>::Where, CudaSpace>);
}

TEST_CASE("shards use the GPUs in turn: all of them, or the named ones") {
  auto const gpus = [](auto const& policy) { return std::array{policy.place(0).gpu, policy.place(1).gpu}; };
  CHECK(gpus(parallel::OnCuda{Two{}}) == std::array{2, 0});
  CHECK(gpus(parallel::OnCuda{Two{}, {4, 6, 5}}) == std::array{5, 4});
  CHECK(gpus(parallel::OnCuda{Two{}, {1}}) == std::array{1, 1});
}
