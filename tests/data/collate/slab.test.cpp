// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/slab.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

/// Gives memory from its start again once all has been freed, and leaves old data there.
struct Reused {
  struct Place {
    std::vector<std::byte> bytes{std::size_t{8} << 20};
    std::size_t used = 0;
    int blocks = 0;
  };
  Place* place;
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const {
    auto* const data = place->bytes.data() + place->used;
    place->used += bytes;
    ++place->blocks;
    return {data, bytes, &release, place};
  }
  static void release(void* owner, std::byte* data, std::size_t bytes) noexcept {
    auto& place = *static_cast<Place*>(owner);
    std::memset(data, 1, bytes);
    if (--place.blocks == 0) place.used = 0;
  }
};

}  // namespace

TEST_CASE("plans keep their addresses and are used again after a rewind") {
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

TEST_CASE("a small batch takes little memory, and a larger one as much as it needs") {
  data::Slab slab;
  CHECK(slab.capacity_bytes() == 0);
  static_cast<void>(slab.take(100));
  CHECK(slab.capacity_bytes() == 4096);
  static_cast<void>(slab.take(100'000));
  slab.rewind();
  CHECK(slab.capacity_bytes() < 120'000);
  static_cast<void>(slab.take(100'000));
  CHECK_FALSE(slab.is_fragmented());
}

TEST_CASE("remembered zeros of memory freed by a rewind do not apply to its next use") {
  Reused::Place place;
  data::Slab slab(Reused{&place});
  constexpr std::size_t bytes = std::size_t{1} << 20;
  auto* const before = slab.take(bytes);
  auto number = slab.zero_runs().reserve(1);
  slab.zero_runs().fill(number, before, before + bytes);
  static_cast<void>(slab.take(bytes));  // a second block
  slab.rewind();
  auto* const after = slab.take(bytes);
  REQUIRE(after == before);
  REQUIRE(after[0] == std::byte{1});
  number = slab.zero_runs().reserve(1);
  slab.zero_runs().fill(number, after, after + bytes);
  CHECK(std::count(after, after + bytes, std::byte{}) == bytes);
}
