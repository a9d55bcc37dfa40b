// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/stream_dataset.hpp>

#include <concepts>
#include <optional>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Countdown {
  struct Lane {
    int left;
    std::optional<int> next() { return left > 0 ? std::optional(left--) : std::nullopt; }
  };
  Index lanes() const { return 2; }
  Lane lane(Index k, Index epoch) const { return {static_cast<int>(3 + k + epoch)}; }
};
struct WithoutEnd : Countdown {
  struct Lane {
    int next() { return 1; }
  };
  Lane lane(Index, Index) const { return {}; }
};
struct WithoutLanes {
  Countdown::Lane lane(Index, Index) const { return {1}; }
};
struct SameInEveryEpoch : Countdown {
  Lane lane(Index) const { return {1}; }
};

}  // namespace

TEST_CASE("a stream has lanes whose next() returns a sample or none") {
  CHECK(data::StreamDataset<Countdown>);
  CHECK_FALSE(data::StreamDataset<WithoutEnd>);
  CHECK_FALSE(data::StreamDataset<WithoutLanes>);
  CHECK_FALSE(data::StreamDataset<SameInEveryEpoch>);
  CHECK_FALSE(data::StreamDataset<int>);
  CHECK(std::same_as<data::SampleOfStream<Countdown>, int>);
}
