// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/segment_plan.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "malloc_count.hpp"

using lockstep::Index;
using lockstep::SegmentPlan;
using Ids = std::vector<std::int32_t>;

namespace {

/// Computes the expected plan from the definition.
struct Expected {
  std::vector<std::uint32_t> order, first, begin;
  Ids rows;
};

Expected define(Ids const& ids) {
  std::map<std::int32_t, std::vector<std::uint32_t>> positions;
  for (std::uint32_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= 0) positions[ids[i]].push_back(i);
  Expected out;
  for (auto const& [id, where] : positions) {
    out.rows.push_back(id);
    out.first.push_back(static_cast<std::uint32_t>(out.begin.size()));
    for (std::size_t k = 0; k < where.size(); ++k) {
      if (k % 32 == 0) out.begin.push_back(static_cast<std::uint32_t>(out.order.size()));
      out.order.push_back(where[k]);
    }
  }
  out.first.push_back(static_cast<std::uint32_t>(out.begin.size()));
  out.begin.push_back(static_cast<std::uint32_t>(out.order.size()));
  return out;
}

void compare(SegmentPlan const& plan, Ids const& ids) {
  auto const expected = define(ids);
  CHECK(plan.order == expected.order);
  CHECK(plan.rows == expected.rows);
  CHECK(plan.first == expected.first);
  CHECK(plan.begin == expected.begin);
  CHECK(plan.chunks() == static_cast<Index>(expected.begin.size()) - 1);
}

Ids random_ids(std::size_t count, std::int32_t below) {
  Ids out(count);
  std::uint32_t seed = 1;
  for (auto& id : out) {
    seed = seed * 1664525u + 1013904223u;
    id = static_cast<std::int32_t>(std::uint64_t{seed} * static_cast<std::uint32_t>(below) >> 32);
  }
  return out;
}

}  // namespace

TEST_CASE("a plan that was never built has no chunks, and neither has an empty one") {
  SegmentPlan plan;
  CHECK(plan.chunks() == 0);
  plan.build({});
  compare(plan, {});
  plan.build(Ids{-1, -7, -1});
  compare(plan, {-1, -7, -1});
}

TEST_CASE("rows end at chunk boundaries and next to them") {
  SegmentPlan plan;
  for (std::size_t count : {1u, 31u, 32u, 33u, 63u, 64u, 65u, 1000u}) {
    Ids const same(count, 5);
    plan.build(same);
    compare(plan, same);
    CHECK(plan.chunks() == static_cast<Index>(count + 31) / 32);
  }
}

TEST_CASE("one plan handles ids of every width, short lists and long ones") {
  SegmentPlan plan;
  for (std::int32_t below : {1, 2, 255, 256, 257, 20'000, 1 << 22, std::numeric_limits<std::int32_t>::max()}) {
    for (std::size_t count : {1u, 33u, 4096u, 8191u, 8192u, 30'000u}) {
      auto const ids = random_ids(count, below);
      plan.build(ids);
      compare(plan, ids);
    }
  }
  Ids const ends{std::numeric_limits<std::int32_t>::max(), 0, -1, std::numeric_limits<std::int32_t>::min(),
                 std::numeric_limits<std::int32_t>::max()};
  plan.build(ends);
  compare(plan, ends);
}

TEST_CASE("the plan equals its definition") {
  CHECK(rc::check("any ids", [](Ids const& ids) {
    SegmentPlan plan;
    plan.build(ids);
    auto const expected = define(ids);
    RC_ASSERT(plan.order == expected.order);
    RC_ASSERT(plan.rows == expected.rows);
    RC_ASSERT(plan.first == expected.first);
    RC_ASSERT(plan.begin == expected.begin);
  }));
  CHECK(rc::check("few distinct ids, padding between", [] {
    auto const ids = *rc::gen::container<Ids>(*rc::gen::inRange<std::size_t>(0, 500), rc::gen::inRange(-1, 5));
    SegmentPlan plan;
    plan.build(ids);
    RC_ASSERT(plan.order == define(ids).order);
    RC_ASSERT(plan.begin == define(ids).begin);
  }));
}

TEST_CASE("storage is reused" * doctest::skip(!lockstep_test::counts_mallocs)) {
  SegmentPlan plan;
  auto const ids = random_ids(4096, 20'000);
  plan.build(ids);
  auto const before = lockstep_test::mallocs.load();
  for (int i = 0; i < 3; ++i) plan.build(ids);
  CHECK(lockstep_test::mallocs == before);
}
