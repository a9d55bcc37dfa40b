// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/slab.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("plans stay where they are and are used again after a rewind") {
  data::Slab slab;
  std::vector<std::int32_t> const ids{2, 1, 2};
  auto& first = slab.take_segment_plan();
  first.build(ids);
  std::vector<SegmentPlan*> more;
  for (int i = 0; i < 20; ++i) more.push_back(&slab.take_segment_plan());
  CHECK(first.rows == std::vector<std::int32_t>{1, 2});
  for (auto const* plan : more) CHECK(plan != &first);
  auto const* memory = slab.take(100);
  slab.rewind();
  CHECK(&slab.take_segment_plan() == &first);
  CHECK(&slab.take_segment_plan() == more[0]);
  CHECK(slab.take(100) == memory);
}
