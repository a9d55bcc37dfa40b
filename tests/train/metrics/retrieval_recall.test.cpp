// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/retrieval_recall.hpp>

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
#include <lockstep/core/tensor_view.hpp>
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

constexpr auto first = [](auto const& both) { return both.first; };
constexpr auto second = [](auto const& both) { return both.second; };

auto recall(Index k = 1) { return train::RetrievalRecall{"item", first, second, k}; }
static_assert(train::Metric<decltype(recall())>);

using Rows = std::vector<float>;

struct Positions {
  std::vector<Index> all;
  TensorView<Index const, 1, HostSpace> positions() const { return {all.data(), {std::ssize(all)}}; }
};

void add(auto& metric, Rows queries, Rows items, std::vector<Index> const& positions, Index width,
         Index item_width = 0) {
  auto const rows = [&](Rows& side, Index columns) {
    return nn::Variable<float, 2, HostSpace>{{side.data(), {std::ssize(side) / columns, columns}}, nullptr};
  };
  metric.add(std::pair{rows(queries, width), rows(items, item_width == 0 ? width : item_width)}, Positions{positions});
}

Rows numbers(std::uint64_t seed, Index count) {
  Rows all;
  for (Index i = 0; i < count; ++i)
    all.push_back(static_cast<float>(normal(Philox(seed), static_cast<std::uint64_t>(i))));
  return all;
}

}  // namespace

TEST_CASE("the share of queries whose own item has the largest dot product") {
  auto metric = recall();
  CHECK(metric.value() == 0);  // without samples
  // Scores: 1 0 2 | 0 1 2 | 1 1 4. The first two find the third item.
  add(metric, {1, 0, 0, 1, 1, 1}, {1, 0, 0, 1, 2, 2}, {0, 1, 2}, 2);
  CHECK(metric.value() == doctest::Approx(1.0 / 3));
  auto two = recall(2);
  add(two, {1, 0, 0, 1, 1, 1}, {1, 0, 0, 1, 2, 2}, {0, 1, 2}, 2);
  CHECK(two.value() == 1);
  CHECK(std::string(metric.name()) == "item_recall_1");
  CHECK(std::string(two.name()) == "item_recall_2");
}

TEST_CASE("rows that are all equal find one item in all, as the first of equal products counts") {
  for (Index const k : {1, 3, 200}) {
    auto metric = recall(k);
    std::vector<Index> positions(130);
    std::iota(positions.begin(), positions.end(), Index{0});
    add(metric, Rows(130 * 5, 0.25f), Rows(130 * 5, 0.25f), positions, 5);
    CHECK(metric.value() == doctest::Approx(static_cast<double>(std::min(k, Index{130})) / 130));
  }
}

TEST_CASE("in any batches and over shards in any order it equals the result of one batch") {
  for (Index const count : {1, 31, 64, 65, 150}) {
    Index const width = 32;
    auto const queries = numbers(1, count * width);
    auto items = numbers(2, count * width);
    for (std::size_t i = 0; i < items.size(); ++i) items[i] += queries[i];
    for (Index i = 5; i + 5 < count; i += 5)  // some equal items
      std::copy_n(items.begin(), width, items.begin() + i * width);
    std::vector<Index> positions(static_cast<std::size_t>(count));
    std::iota(positions.begin(), positions.end(), Index{0});
    auto const score = [&](Index query, Index item) {
      float sum = 0;
      for (Index c = 0; c < width; ++c)
        sum += queries[static_cast<std::size_t>(query * width + c)] * items[static_cast<std::size_t>(item * width + c)];
      return sum;
    };
    double found = 0;
    for (Index i = 0; i < count; ++i) {
      Index before = 0;
      for (Index j = 0; j < count; ++j)
        if (j != i) before += std::abs(score(i, j) - score(i, i)) < 1e-5f ? j < i : score(i, j) > score(i, i);
      found += before < 3;
    }
    auto whole = recall(3), one = recall(3), other = recall(3), none = recall(3);
    add(whole, queries, items, positions, width);
    for (Index i = count - 1; i >= 0; --i) {
      auto const row = [&](Rows const& rows) { return Rows(rows.begin() + i * width, rows.begin() + (i + 1) * width); };
      add(i % 3 == 0 ? one : other, row(queries), row(items), {i}, width);
    }
    other.add_samples(none.samples());
    other.add_samples(one.samples());
    CHECK(whole.value() == doctest::Approx(found / static_cast<double>(count)));
    CHECK(other.value() == whole.value());
    if (count > 31) CHECK(whole.value() < 1);  // otherwise the test shows little
    CHECK(whole.totals().empty());
  }
}

TEST_CASE("wrong shapes, NaN and k are reported") {
  auto metric = recall();
  CHECK_THROWS_WITH_AS(add(metric, Rows(6), Rows(4), {0, 1}, 3, 2),
                       "RetrievalRecall: the queries are [2, 3], the items [2, 2] and the batch has 2 samples; each "
                       "sample needs a query and an item of one width",
                       ShapeError);
  CHECK_THROWS_AS(add(metric, Rows(6), Rows(6), {0, 1}, 2), ShapeError);
  add(metric, Rows(6, 1), Rows(6, 1), {0, 1}, 3);
  CHECK_THROWS_WITH_AS(add(metric, Rows(4), Rows(4), {2, 3}, 2),
                       "RetrievalRecall: the model predicts rows of width 2 and predicted rows of width 3 before; all "
                       "rows must be equally long",
                       ShapeError);
  CHECK(metric.value() == 0.5);
  add(metric, Rows(3, 1), {1, std::nanf(""), 1}, {2}, 3);
  CHECK_THROWS_WITH_AS(static_cast<void>(metric.value()),
                       doctest::Contains("RetrievalRecall: a dot product of the predicted rows is nan"), DataError);
  CHECK_THROWS_WITH_AS(recall(0), "RetrievalRecall: k is 0; it must be at least 1", ConfigError);
}

namespace {

struct Item {
  std::array<float, 3> query, item;
};

class Towers {
 public:
  void visit(auto&& each) {
    each("query", query_);
    each("item", item_);
  }
  auto predict(auto& context, auto const& batch) const {
    return std::pair{query_.forward(context, context.input(batch[&Item::query].values)),
                     item_.forward(context, context.input(batch[&Item::item].values))};
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& both, auto const&) const {
    return nn::mean_squared_error(context, both.first, both.second.value);
  }

 private:
  nn::Linear query_{3, 4}, item_{3, 4};
};

double recall_with(auto policy) {
  std::vector<Item> items(37);
  for (std::size_t i = 0; i < items.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      items[i].query[c] = static_cast<float>(normal(Philox(3), 3 * i + c));
      items[i].item[c] = static_cast<float>(normal(Philox(4), 3 * i + c));
    }
  data::DataLoader loader{
      data::InMemoryDataset{items}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 5}};
  Trainer trainer{Towers{}, optim::SGD{}, std::move(policy)};
  auto const report = trainer.evaluate(train::Evaluation{loader, recall(9)});
  CHECK(report.metrics[0].first == "item_recall_9");
  return report.metrics[0].second;
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
