// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/split.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("steps of an epoch equal those in the documentation") {
  // 10,000 samples, batch 8: 1,250 micro-steps on one rank, 313 on four, 312 if the tail is dropped
  CHECK(data::EpochLayout(10000, 8, 1, data::Tail::exact).steps() == 1250);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::exact).steps() == 313);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::pad).steps() == 313);
  CHECK(data::EpochLayout(10000, 8, 4, data::Tail::drop).steps() == 312);
  CHECK(data::EpochLayout(0, 8, 4, data::Tail::exact).steps() == 0);
  CHECK(data::EpochLayout(3, 8, 4, data::Tail::drop).steps() == 0);
  CHECK(data::EpochLayout(1, 8, 4, data::Tail::exact).steps() == 1);
}

TEST_CASE("shards split each global batch by remainder, every position once") {
  std::vector<char> seen;
  for (Index samples = 0; samples <= 300; ++samples) {
    for (int shards = 1; shards <= 9; ++shards) {
      for (Index batch : {1, 3, 8}) {
        for (auto tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
          data::EpochLayout const layout(samples, batch, shards, tail);
          Index const expected = tail == data::Tail::exact ? samples
                                 : tail == data::Tail::pad ? (samples + shards - 1) / shards * shards
                                                           : samples / (batch * shards) * batch * shards;
          seen.assign(static_cast<std::size_t>(expected), 0);
          Index count = 0;
          bool holds = true;
          for (Index step = 0; step < layout.steps(); ++step) {
            Index most = 0, fewest = batch;
            for (int shard = 0; shard < shards; ++shard) {
              auto const rows = layout.rows(step, shard);
              most = std::max(most, rows);
              fewest = std::min(fewest, rows);
              for (Index row = 0; row < rows; ++row, ++count) {
                auto const position = layout.position(step, shard, row);
                holds &= position % shards == shard && position / (batch * shards) == step && position < expected;
                if (holds) holds = !std::exchange(seen[static_cast<std::size_t>(position)], 1);
              }
            }
            holds &= most <= batch && most - fewest <= (tail == data::Tail::exact ? 1 : 0);
          }
          REQUIRE(holds);
          REQUIRE(count == expected);
        }
      }
    }
  }
}

TEST_CASE("the positions of a step do not depend on how its global batch is divided") {
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

// One hash of every rank's indices for all lengths to 200, per number of ranks from 1 to 17, as PyTorch 2.15 gives
// them: FNV-1a over the values of DistributedSampler(length, ranks, rank, shuffle=False, drop_last), rank by rank, and
// 0xffff after each pair of length and rank.
TEST_CASE("the split equals that of PyTorch's DistributedSampler") {
  struct Case {
    data::Tail tail;
    std::array<std::uint64_t, 17> hashes;
  };
  for (auto const& [tail, hashes] :
       {Case{data::Tail::pad,
             {0xfc0be0cbc5794fa9u, 0xcdb0b2226e3fc091u, 0xef32b74bc9ec645du, 0xa7281f0d55303268u, 0x3922eb81e743adb3u,
              0x83190e88c70522f3u, 0x2d54230189e0553u, 0xa2186fbacaa0818u, 0x7249d813809545b5u, 0xc413a6fdc2dd121au,
              0x192a04f39fc0d135u, 0xd4e17078a3e8957fu, 0xef2b97aef0e150c0u, 0x647bdccc83b76a44u, 0x33968af15dd58e32u,
              0xd0ed30e1d0c0e6fu, 0xc9c144d81d18966bu}},
        Case{data::Tail::drop,
             {0xfc0be0cbc5794fa9u, 0x38ab30a2a28772b9u, 0x84d3780f4c68f3a1u, 0xabcc216c84628341u, 0x35726e3eab476e81u,
              0x92404fa214896f42u, 0x1f6e0966ab57499fu, 0x3b966b928ff57e5du, 0xfb0c4db8218e9144u, 0xa382aec81ac98a39u,
              0x69b1c075b219b971u, 0x7d6d02c8155e6b05u, 0x273e5b9dd51be2e8u, 0x4c984b4866f34893u, 0xc6dbb954ca708601u,
              0x6c033da4a4536e45u, 0xef76778c17b287e0u}}}) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      auto hash = 0xcbf29ce484222325u;
      auto const add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
      for (Index samples = 1; samples <= 200; ++samples) {
        for (int rank = 0; rank < ranks; ++rank) {
          // Batches of one: PyTorch drops samples that do not fill the ranks, and another class makes batches.
          data::EpochLayout const layout(samples, 1, ranks, tail);
          for (Index step = 0; step < layout.steps(); ++step)
            for (Index row = 0; row < layout.rows(step, rank); ++row)
              add(static_cast<std::uint64_t>(layout.position(step, rank, row) % samples));
          add(0xffff);
        }
      }
      CHECK_MESSAGE(hash == hashes[static_cast<std::size_t>(ranks - 1)], ranks, " ranks");
    }
  }
}

TEST_CASE("a resumed epoch is the rest of a whole one") {
  for (auto tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
    for (Index first : {0, 1, 7, 12, 39, 40}) {
      for (int shards : {1, 3, 4}) {
        data::EpochLayout const layout(40, 3, shards, tail, first);
        std::vector<Index> seen;
        for (Index step = 0; step < layout.steps(); ++step) {
          CHECK(layout.begin(step) == first + step * 3 * shards);
          for (int shard = 0; shard < shards; ++shard)
            for (Index row = 0; row < layout.rows(step, shard); ++row)
              seen.push_back(layout.position(step, shard, row));
        }
        std::sort(seen.begin(), seen.end());
        auto const rest = 40 - first;
        auto const count = tail == data::Tail::exact ? rest
                           : tail == data::Tail::pad ? (rest + shards - 1) / shards * shards
                                                     : rest / (3 * shards) * 3 * shards;
        REQUIRE(static_cast<Index>(seen.size()) == count);
        for (Index i = 0; i < count; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == first + i);
        if (layout.steps() > 0) CHECK(layout.end(layout.steps() - 1) == first + count);
      }
    }
  }
}
