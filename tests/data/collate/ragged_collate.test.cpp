// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/ragged_collate.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

#include "collated.hpp"

using namespace lockstep;
using lockstep_test::everything;
using lockstep_test::Everything;
using lockstep_test::Point;

namespace {

template <class Sample>
using Collated = lockstep_test::Collated<Sample, data::RaggedCollate>;
struct Words {
  std::vector<std::int32_t> ids;
};
struct Rated {
  std::optional<int> stars;
};
/// Has extents and writes samples in place.
struct Direct {
  Index size() const { return 20; }
  Words get(Index i) const { return {std::vector<std::int32_t>(static_cast<std::size_t>(i % 4), static_cast<int>(i))}; }
  data::SampleExtent<Words> extent(Index i) const { return {{i % 4}}; }
  void read_into(Index i, data::Row<Words> row) const {
    for (auto& id : row[&Words::ids]) id = static_cast<int>(i);
  }
};

static_assert(data::Collate<data::RaggedCollate, data::InMemoryDataset<Everything>>);
static_assert(data::FinishesBatches<data::RaggedCollate, data::InMemoryDataset<Everything>>);
static_assert(data::ReadsIntoRows<Direct, data::RaggedCollate> && data::ReadsIntoRows<Direct, data::PadCollate>);
static_assert(std::is_same_v<data::ColumnOf<std::vector<float>, HostSpace, data::Sequences::ragged>,
                             data::RaggedColumn<float, HostSpace>>);
static_assert(std::is_same_v<data::ColumnOf<std::vector<std::array<float, 2>>, CudaSpace, data::Sequences::ragged>,
                             data::RaggedColumn<float, CudaSpace, 2>>);

}  // namespace

TEST_CASE("sequences are concatenated, all other members are as with padding") {
  for (std::size_t rows : {0u, 1u, 2u, 31u, 32u, 33u}) {
    std::vector<Everything> samples;
    for (std::size_t r = 0; r < rows; ++r) samples.push_back(everything(static_cast<int>(r % 20), (r * 7) % 5));
    Collated<Everything> collated(samples, {.value = 9});
    lockstep_test::Collated<Everything, data::PadCollate> padded(samples, {.value = 9});
    auto const& batch = collated.batch;
    auto const& tokens = batch[&Everything::tokens];
    auto const& track = batch[&Everything::track];
    auto const& trace = batch[&Everything::point][&Point::trace];
    CHECK(batch.rows() == static_cast<Index>(rows));
    CHECK(batch.epoch() == 7);
    CHECK(tokens.offsets.size() == static_cast<Index>(rows) + 1);
    CHECK(tokens.values.extent == Extents<1>{tokens.offsets(static_cast<Index>(rows))});
    CHECK(track.values.extent == Extents<2>{tokens.values.size(), 2});
    CHECK(tokens.longest == padded.batch[&Everything::tokens].values.extent[1]);
    CHECK(tokens.plan == nullptr);
    Index at = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      auto const row = static_cast<Index>(r);
      auto const& s = samples[r];
      CHECK(batch.positions()(row) == 100 + row);
      CHECK(tokens.offsets(row) == at);
      CHECK(trace.offsets(row + 1) - trace.offsets(row) == static_cast<Index>(s.tokens.size()));
      for (std::size_t k = 0; k < s.tokens.size(); ++k, ++at) {
        CHECK(tokens.values(at) == s.tokens[k]);
        CHECK(trace.values(at) == s.point.trace[k]);
        CHECK(track.values(at, 0) == s.track[k][0]);
        CHECK(track.values(at, 1) == s.track[k][1]);
      }
      CHECK(batch[&Everything::label].values(row) == s.label);
      CHECK(batch[&Everything::title][row] == s.title);
      CHECK(batch[&Everything::position].values(row, 2) == s.position[2]);
      CHECK(batch[&Everything::score].present(row) == s.score.has_value());
      CHECK(batch[&Everything::score].values(row) == s.score.value_or(9));
      CHECK(batch[&Everything::point][&Point::x].values(row) == s.point.x);
    }
    CHECK(tokens.offsets(static_cast<Index>(rows)) == at);
  }
}

TEST_CASE("columns are aligned to 64 bytes, and the slab stops growing") {
  Collated<Everything> collated({everything(1, 30000), everything(2, 50000)});
  auto const aligned = [](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; };
  CHECK(aligned(collated.batch[&Everything::tokens].values.data));
  CHECK(aligned(collated.batch[&Everything::tokens].offsets.data));
  CHECK(aligned(collated.batch[&Everything::track].values.data));
  collated.make({everything(1, 30000), everything(2, 50000)});
  auto const capacity = collated.slab.capacity_bytes();
  for (int i = 0; i < 5; ++i) {
    collated.make({everything(1, 3)});
    collated.make({everything(1, 30000), everything(2, 50000)});
  }
  CHECK(collated.slab.capacity_bytes() == capacity);
}

TEST_CASE("the segment plan covers all ids") {
  Collated<Words> collated({{{7, 3}}, {{}}, {{3, 0, 7}}}, {.segment_plans = data::SegmentPlans::build});
  auto const* plan = collated.batch[&Words::ids].plan;
  REQUIRE(plan != nullptr);
  CHECK(plan->rows == std::vector<std::int32_t>{0, 3, 7});
  CHECK(plan->order == std::vector<std::uint32_t>{3, 1, 2, 0, 4});
}

TEST_CASE("invalid lengths are refused") {
  std::vector<Index> const positions{0};
  data::Slab slab;
  data::RaggedCollate const collate;
  std::vector<data::SampleExtent<Words>> extents{{{2}}};
  auto const batch = collate.plan(data::BatchPlan<Words>{extents, positions, 0}, slab);
  CHECK_THROWS_WITH_AS(collate.row(batch, 0, Words{{1, 2, 3}}),
                       doctest::Contains("RaggedCollate: the sample in row 0 has a member of length 3, but length 2"),
                       DataError);
  for (Index length : {Index{-1}, Index{1} << 31}) {
    extents[0].lengths[0] = length;
    CHECK_THROWS_WITH_AS(static_cast<void>(collate.plan(data::BatchPlan<Words>{extents, positions, 0}, slab)),
                         doctest::Contains("a length must be in [0, 2^31)"), DataError);
  }
  CHECK_THROWS_WITH_AS(Collated<Rated>({{}}, {.value = 0.5}), doctest::Contains("RaggedCollate: the padding value 0.5"),
                       ConfigError);
}

TEST_CASE("a loader reads ragged batches in place, with segment plans") {
  for (int workers : {0, 2}) {
    data::DataLoader loader{Direct{},
                            data::SequentialSampler{},
                            data::RaggedCollate{.segment_plans = data::SegmentPlans::build},
                            {.batch_size = 4, .workers = workers}};
    loader.start({0, 3, 3}, 0, 0, 1);
    Index rows = 0;
    for (Index step = 0; step < loader.steps({0, 3, 3}); ++step) {
      auto const held = loader.next();
      for (auto const& batch : held.batches()) {
        auto const& ids = batch[&Words::ids];
        REQUIRE(ids.plan != nullptr);
        CHECK(static_cast<Index>(ids.plan->order.size()) == ids.values.size());
        for (Index r = 0; r < batch.rows(); ++r, ++rows) {
          auto const i = batch.positions()(r);
          CHECK(ids.offsets(r + 1) - ids.offsets(r) == i % 4);
          for (auto k = ids.offsets(r); k < ids.offsets(r + 1); ++k) CHECK(ids.values(k) == i);
        }
      }
    }
    CHECK(rows == 20);
  }
}
