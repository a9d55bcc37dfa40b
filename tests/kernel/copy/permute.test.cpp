// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/permute.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/copy/permute_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using kernel::PermuteShape;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE("axes of extent 1 are left out, and axes that stay adjacent are joined") {
  auto const shape = [](std::vector<Index> const& extent, std::vector<int> const& axes) {
    return PermuteShape::of(extent, axes);
  };
  CHECK(shape({2, 3, 4}, {0, 1, 2}).rank == 1);
  CHECK(shape({2, 3, 4, 5}, {2, 3, 0, 1}).rank == 2);
  CHECK(shape({2, 1, 4}, {2, 1, 0}).rank == 2);
  CHECK(shape({1, 1}, {1, 0}).rank == 0);
  auto const transposed = shape({2, 3}, {1, 0});
  CHECK(transposed.extent[0] == 3);
  CHECK(transposed.distance[0] == 1);
  CHECK(transposed.distance[1] == 3);
  CHECK(transposed.source(1) == 3);
}

TEST_CASE_TEMPLATE("y is x in the order of the axes, written or added, for any number of threads", T, float, double) {
  for (auto const& each : permute_cases::cases()) {
    auto const s = each.shape();
    CAPTURE(s.rank);
    Index size = 1;
    for (auto const extent : each.extent) size *= extent;
    REQUIRE(s.size() == size);
    auto const x = values<T>(size, 1), start = values<T>(size, 2);
    auto const expected = each.permuted(x);
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      auto y = start, added = start;
      kernel::Permute<HostSpace>::run<T>(stream, s, view(x, size), view(y, size), Write::overwrite);
      kernel::Permute<HostSpace>::run<T>(stream, s, view(x, size), view(added, size), Write::add);
      CHECK(y == expected);
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) wrong += added[i] != start[i] + expected[i];
      CHECK(wrong == 0);
    }
  }
}
