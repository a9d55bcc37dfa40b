// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/relative_bias.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::RelativeBias<HostSpace>;

TEST_CASE("forward looks up, backward sums per table entry") {
  kernel::RelativeBuckets const buckets{.count = 6, .farthest = 5};
  Index const heads = 3, first = -9, distances = 17;
  auto const table = values<double>(buckets.count * heads, 1), dbias = values<double>(heads * distances, 2);
  std::vector<double> bias(dbias.size());
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  Kernel::forward<double>(stream, buckets, first, view(table, 6, heads), view(bias, heads, distances));
  for (double before : {0.0, 1.0}) {
    std::vector<double> dtable(table.size(), before), expected = dtable;
    Kernel::backward<double>(stream, buckets, first, view(dbias, heads, distances), view(dtable, 6, heads),
                             before == 0 ? Write::overwrite : Write::add);
    for (Index d = 0; d < distances; ++d)
      for (Index h = 0; h < heads; ++h) {
        auto const entry = static_cast<std::size_t>(buckets.of(first + d) * heads + h),
                   at = static_cast<std::size_t>(h * distances + d);
        CHECK(bias[at] == table[entry]);
        expected[entry] += dbias[at];
      }
    for (std::size_t i = 0; i < dtable.size(); ++i)
      CHECK(std::abs(dtable[i] - expected[i]) <= 17 * 0x1p-52 * 17);  // 17 terms below one, in another order
  }
}

TEST_CASE("without distances there is nothing to look up, and the gradient is zero") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<float> table(64, 1.0f), none;
  CHECK_NOTHROW(Kernel::forward<float>(stream, {}, 1, view(table, 32, 2), view(none, 2, 0)));
  Kernel::backward<float>(stream, {}, 1, view(none, 2, 0), view(table, 32, 2), Write::overwrite);
  CHECK(table == std::vector<float>(64, 0.0f));
}

TEST_CASE("shapes that disagree are refused with both") {
  ThreadPool pool(1);
  std::vector<float> table(64), bias(9);
  CHECK_THROWS_WITH_AS(
      Kernel::forward<float>(memory::Stream<HostSpace>(pool), {}, 0, view(table, 32, 2), view(bias, 3, 3)),
      "RelativeBias: the table is [32, 2] and the bias [3, 3]; the table needs 32 rows and a column for each of the "
      "bias's rows",
      ShapeError);
}
