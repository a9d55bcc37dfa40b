// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/split.hpp>

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("steps of an epoch, as in the users' guide") {
  // 10,000 samples, batch 8: 1,250 micro-steps on one rank, 313 on four, 312 where the tail is dropped
  CHECK(data::EpochLayout(10000, 8, 1, data::Tail::exact).steps() == 1250);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::exact).steps() == 313);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::pad).steps() == 313);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::drop).steps() == 312);
  CHECK(data::EpochLayout(0, 8, 4, data::Tail::exact).steps() == 0);
  CHECK(data::EpochLayout(3, 8, 4, data::Tail::drop).steps() == 0);
  CHECK(data::EpochLayout(1, 8, 4, data::Tail::exact).steps() == 1);
}

TEST_CASE("shards part each global batch by remainder, every position once") {
  for (Index samples = 0; samples <= 70; ++samples) {
    for (int shards = 1; shards <= 5; ++shards) {
      for (Index batch : {1, 3, 8}) {
        for (auto tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
          data::EpochLayout const layout(samples, batch, shards, tail);
          std::vector<Index> seen;
          for (Index step = 0; step < layout.steps(); ++step) {
            Index most = 0, fewest = batch;
            for (int shard = 0; shard < shards; ++shard) {
              auto const rows = layout.rows(step, shard);
              most = std::max(most, rows);
              fewest = std::min(fewest, rows);
              for (Index row = 0; row < rows; ++row) {
                auto const position = layout.position(step, shard, row);
                REQUIRE(position % shards == shard);
                REQUIRE(position / (batch * shards) == step);
                seen.push_back(position);
              }
            }
            REQUIRE(most <= batch);
            REQUIRE(most - fewest <= (tail == data::Tail::exact ? 1 : 0));
          }
          std::sort(seen.begin(), seen.end());
          Index const expected = tail == data::Tail::exact ? samples
                                 : tail == data::Tail::pad ? (samples + shards - 1) / shards * shards
                                                           : samples / (batch * shards) * batch * shards;
          REQUIRE(static_cast<Index>(seen.size()) == expected);
          for (Index i = 0; i < expected; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
        }
      }
    }
  }
}

TEST_CASE("the positions of a step do not depend on how its global batch is shared") {
  auto const of_step = [](Index batch, int shards, Index step) {
    data::EpochLayout const layout(100, batch, shards, data::Tail::exact);
    std::vector<Index> all;
    for (int shard = 0; shard < shards; ++shard) {
      for (Index row = 0; row < layout.rows(step, shard); ++row) all.push_back(layout.position(step, shard, row));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  for (Index step = 0; step < 9; ++step) {
    CHECK(of_step(12, 1, step) == of_step(6, 2, step));
    CHECK(of_step(12, 1, step) == of_step(3, 4, step));
  }
}
