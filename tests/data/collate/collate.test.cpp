// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/collate.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

using namespace lockstep;

namespace {

/// A user's own collate: sums samples that are not aggregates.
struct SumCollate {
  struct Sums {
    Index rows = 0;
    std::span<double> values;
  };
  template <class D, class Space>
  using Batch = Sums;

  Sums plan(data::BatchPlan<std::vector<double>> const& plan, data::Slab& slab) const {
    slab.rewind();
    auto const rows = static_cast<Index>(plan.positions.size());
    return {rows, {slab.take_elements<double>(rows), plan.positions.size()}};
  }
  void row(Sums& batch, Index row, std::vector<double> const& sample) const {
    double sum = 0;
    for (auto x : sample) sum += x;
    batch.values[static_cast<std::size_t>(row)] = sum;
  }
};
/// Can be moved, but not copied.
struct Guarded {
  double value = 0;
  explicit Guarded(double is) : value(is) {}
  Guarded(Guarded const& other) : value(other.value) { throw std::logic_error("a sample was copied"); }
  Guarded(Guarded&&) noexcept = default;
  Guarded& operator=(Guarded&&) noexcept = default;
};
/// Writes each value once, and counts the writes.
struct CountCollate {
  struct Values {
    std::span<double> values;
  };
  template <class D, class Space>
  using Batch = Values;

  std::atomic<Index>* bytes;

  Values plan(data::BatchPlan<Guarded> const& plan, data::Slab& slab) const {
    slab.rewind();
    return {{slab.take_elements<double>(static_cast<Index>(plan.positions.size())), plan.positions.size()}};
  }
  void row(Values& batch, Index row, Guarded const& sample) const {
    batch.values[static_cast<std::size_t>(row)] = sample.value;
    *bytes += static_cast<Index>(sizeof sample.value);
  }
};
/// Creates each sample on request.
struct Made {
  Index size() const { return 33; }
  Guarded get(Index i) const { return Guarded(static_cast<double>(i)); }
};
/// Holds its samples.
struct Kept {
  std::shared_ptr<std::vector<Guarded>> samples = std::make_shared<std::vector<Guarded>>();
  Kept() {
    for (Index i = 0; i < 33; ++i) samples->emplace_back(static_cast<double>(i));
  }
  Index size() const { return 33; }
  Guarded const& get(Index i) const { return (*samples)[static_cast<std::size_t>(i)]; }
};
struct WithoutRow {
  template <class D, class Space>
  using Batch = int;
  int plan(auto const&, data::Slab&) const { return 0; }
};
struct Point {
  float x = 0;
};
struct Extents : data::InMemoryDataset<Point> {
  using InMemoryDataset::InMemoryDataset;
  data::SampleExtent<Point> extent(Index) const { return {}; }
  void read_into(Index i, data::Row<Point> row) const { row[&Point::x] = get(i).x; }
};

using Lists = data::InMemoryDataset<std::vector<double>>;
using Points = data::InMemoryDataset<Point>;
static_assert(data::Collate<SumCollate, Lists> && !data::Collate<SumCollate, Points>);
static_assert(data::Collate<data::PadCollate, Points>);
static_assert(!data::Collate<WithoutRow, Points> && !data::Collate<int, Points>);
static_assert(data::ReadsIntoRows<Extents, data::PadCollate> && !data::ReadsIntoRows<Points, data::PadCollate>);

}  // namespace

TEST_CASE("a user's collate makes its own type of batch") {
  Lists const lists{std::vector<std::vector<double>>{{1, 2}, {}, {3}, {4, 5, 6}, {7}}};
  data::DataLoader loader{lists, data::SequentialSampler{}, SumCollate{}, {.batch_size = 3}};
  loader.start({}, 0, 0, 1);
  auto const first = loader.next(), second = loader.next();
  CHECK(first.batches()[0].values[0] == 3);
  CHECK(first.batches()[0].values[1] == 0);
  CHECK(first.batches()[0].values[2] == 3);
  CHECK(second.batches()[0].rows == 2);
  CHECK(second.batches()[0].values[0] == 15);
}

TEST_CASE("a sample is copied only into its row, and only once") {
  auto const sums_of = [](auto const& dataset, int workers) {
    std::atomic<Index> bytes = 0;
    data::DataLoader loader{
        dataset, data::SequentialSampler{}, CountCollate{&bytes}, {.batch_size = 8, .workers = workers}};
    loader.start({}, 0, 0, 2);
    double sum = 0;
    for (Index step = 0; step < 2 * loader.steps(); ++step) {
      auto const held = loader.next();
      for (auto const value : held.batches()[0].values) sum += value;
    }
    CHECK(bytes == 2 * 33 * static_cast<Index>(sizeof(double)));
    return sum;
  };
  for (int workers : {0, 2}) {
    CHECK(sums_of(Made{}, workers) == 33 * 32);
    CHECK(sums_of(Kept{}, workers) == 33 * 32);
  }
}
