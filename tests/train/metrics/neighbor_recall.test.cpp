// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/neighbor_recall.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;

namespace {

struct Face {
  std::array<float, 3> row;
  std::int32_t person;
};

auto recall(Index k = 1) { return train::NeighborRecall{&Face::person, k}; }
static_assert(train::Metric<decltype(recall())>);

/// Adds rows as a model that predicts them would.
void add(auto& metric, std::vector<Face> const& faces, Index first = 0) {
  data::Collated const held{data::PadCollate{}, faces, first};
  auto const rows = held.batch()[&Face::row].values;
  std::vector<float> copy(rows.data, rows.data + rows.size());
  metric.add(nn::Variable<float, 2, HostSpace>{{copy.data(), rows.extent}, nullptr}, held.batch());
}

std::vector<Face> faces(std::size_t count) {
  std::vector<Face> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].person = static_cast<std::int32_t>(i * 7 % 10);
    for (std::size_t c = 0; c < 3; ++c)
      all[i].row[c] = static_cast<float>(normal(Philox(1), 3 * i + c) + 0.7 * normal(Philox(2), 3 * (i * 7 % 10) + c));
  }
  return all;
}

}  // namespace

TEST_CASE("the share of samples with one of their class among the largest dot products with others") {
  auto metric = recall();
  CHECK(metric.value() == 0);  // without samples
  // The products of the first with the second and the fourth are 2. The second is nearer to the fourth (4), the third
  // has no other of its class, and the two others have the smallest product of all.
  add(metric, {{{1, 0, 0}, 5}, {{2, 0, 0}, 5}, {{0, 1, 0}, 6}, {{2, 0, 1}, 9}, {{-9, 0, 1}, 9}});
  CHECK(metric.value() == 0);
  auto two = recall(2);
  add(two, {{{1, 0, 0}, 5}, {{2, 0, 0}, 5}, {{0, 1, 0}, 6}, {{2, 0, 1}, 9}, {{-9, 0, 1}, 9}});
  CHECK(two.value() == 0.5);
  CHECK(std::string(two.name()) == "neighbor_recall_2");
}

TEST_CASE("rows that are all equal find nothing, and a class alone does not count") {
  auto metric = recall();
  add(metric, std::vector<Face>{{{1, 1, 1}, 0}, {{1, 1, 1}, 0}, {{1, 1, 1}, 1}, {{1, 1, 1}, 1}});
  CHECK(metric.value() == 0);
  auto alone = recall();
  add(alone, std::vector<Face>{{{1, 0, 0}, 0}, {{1, 0, 0}, 0}, {{0, 1, 0}, 1}});
  CHECK(alone.value() == 1);
}

TEST_CASE("in any batches and over shards in any order it equals the definition") {
  for (std::size_t const count : {std::size_t{1}, std::size_t{31}, std::size_t{64}, std::size_t{65}, std::size_t{150}})
    for (Index const k : {1, 3}) {
      auto const all = faces(count);
      double found = 0, rows = 0;
      for (std::size_t i = 0; i < count; ++i) {
        auto const dot = [&](std::size_t j) {
          return std::inner_product(all[i].row.begin(), all[i].row.end(), all[j].row.begin(), 0.0);
        };
        double best = -1e9;
        for (std::size_t j = 0; j < count; ++j)
          if (j != i && all[j].person == all[i].person) best = std::max(best, dot(j));
        Index before = 0;
        for (std::size_t j = 0; j < count; ++j) before += all[j].person != all[i].person && dot(j) > best;
        rows += best > -1e9;
        found += best > -1e9 && before < k;
      }
      auto whole = recall(k), one = recall(k), other = recall(k), none = recall(k);
      add(whole, all);
      for (std::size_t i = count; i-- > 0;) add(i % 3 == 0 ? one : other, {all[i]}, static_cast<Index>(i));
      other.add_samples(none.samples());
      other.add_samples(one.samples());
      CHECK(whole.value() == doctest::Approx(rows > 0 ? found / rows : 0));
      CHECK(other.value() == whole.value());
      if (count == 150) CHECK((whole.value() > 0 && whole.value() < 1));
      CHECK(whole.totals().empty());
    }
}

TEST_CASE("NaN and a k of 0 are reported") {
  auto metric = recall();
  add(metric, {{{1, 0, std::nanf("")}, 5}, {{2, 0, 0}, 5}});
  CHECK_THROWS_WITH_AS(static_cast<void>(metric.value()),
                       doctest::Contains("NeighborRecall: a dot product of the predicted rows is nan"), DataError);
  CHECK_THROWS_WITH_AS(recall(0), "NeighborRecall: k is 0; it must be at least 1", ConfigError);
}

namespace {

class Embedding {
 public:
  void visit(auto&& each) { each("map", map_); }
  auto predict(auto& context, auto const& batch) const {
    return map_.forward(context, context.input(batch[&Face::row].values));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& rows, auto const&) const {
    return nn::mean_squared_error(context, rows, rows.value);
  }

 private:
  nn::Linear map_{3, 4};
};

double recall_with(auto policy) {
  data::DataLoader loader{
      data::InMemoryDataset{faces(37)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 5}};
  Trainer trainer{Embedding{}, optim::SGD{}, std::move(policy)};
  return trainer.evaluate(train::Evaluation{loader, recall()}).metrics[0].second;
}

}  // namespace

TEST_CASE("an evaluation compares the samples of all devices and ranks") {
  auto const expected = recall_with(parallel::SingleDevice{.threads = 1});
  CHECK(expected > 0);
  CHECK(expected < 1);
  CHECK(recall_with(parallel::DataParallel{.devices = 3, .threads = 1}) == expected);
  launch::run({.threads = 2}, [&](launch::World& world) {
    CHECK(recall_with(parallel::DistributedDataParallel{comm::connect(world), 256, 1}) == expected);
    return 0;
  });
}
