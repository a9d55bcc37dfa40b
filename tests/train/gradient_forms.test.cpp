// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trace/trace.hpp>
#include <lockstep/train/trainer/averages.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index words = 200, longest = 9;

/// A bag of words, whose table's gradient has the requested form.
TextClassifier bag_of_words(nn::GradientForm form) {
  return TextClassifier({.words = words, .longest = longest, .layers = 0, .width = 8, .form = form});
}

/// A few words are in most texts, and most words in few.
std::vector<Text> texts(int count) {
  std::vector<Text> all;
  for (int i = 0; i < count; ++i) {
    auto const draw = [&](std::uint64_t k) { return mix(static_cast<std::uint64_t>(i), k); };
    Text text{{}, static_cast<int>(draw(0) % 3)};
    for (std::uint64_t t = 0; t < 1 + draw(1) % longest; ++t)
      text.tokens.push_back(static_cast<std::int32_t>(draw(2 * t + 2) % (draw(2 * t + 3) % 4 == 0 ? words : 5)));
    all.push_back(text);
  }
  return all;
}

template <class Policy>
std::vector<float> train_with(Policy policy, optim::AdamW const& optimizer, nn::GradientForm form) {
  Trainer trainer(bag_of_words(form), optimizer, std::move(policy), 7);
  // 11 samples: short last batches, and ranks without samples
  data::DataLoader loader(data::InMemoryDataset(texts(11)), data::ShuffledSampler{.seed = 3}, data::PadCollate{},
                          {.batch_size = 2, .workers = 0});
  trainer.fit(loader, train::NoEvaluation{}, {.epochs = 8, .accumulation = 2, .clip_norm = 0.05});
  return {trainer.values().begin(), trainer.values().end()};
}

std::vector<float> ddp(int ranks, optim::AdamW const& optimizer, nn::GradientForm form) {
  std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks));
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    all[static_cast<std::size_t>(world.rank)] =
        train_with(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, optimizer, form);
    return 0;
  });
  for (auto const& one : all) CHECK(one == all[0]);
  return all[0];
}

}  // namespace

TEST_CASE("an embedding with a row-sparse gradient trains with the bits of a dense one") {
  optim::AdamW const optimizer{.learning_rate = 1e-2};
  using nn::GradientForm;
  for (int threads : {1, 3}) {
    parallel::SingleDevice const single{.threads = threads};
    CHECK(train_with(single, optimizer, GradientForm::by_rows) == train_with(single, optimizer, GradientForm::dense));
  }
  for (int shards : {2, 3, 4}) {
    CAPTURE(shards);
    parallel::DataParallel const dp{.devices = shards, .threads = 1};
    auto const expected = train_with(dp, optimizer, GradientForm::dense);
    CHECK(train_with(dp, optimizer, GradientForm::by_rows) == expected);
    CHECK(ddp(shards, optimizer, GradientForm::by_rows) == expected);
    CHECK(ddp(shards, optimizer, GradientForm::dense) == expected);
  }
}

TEST_CASE("a single rank reports the rows of its tables, too, like a single device") {
  struct Observed {
    std::vector<std::pair<std::size_t, std::size_t>> tables;  // bytes of rows, and of all
    bool sent = false, traced = false;
  };
  auto const tables_of = [](auto policy, bool traces) {
    Trainer trainer(bag_of_words(nn::GradientForm::by_rows), optim::AdamW{}, std::move(policy), 7);
    data::DataLoader loader(data::InMemoryDataset(texts(11)), data::ShuffledSampler{.seed = 3}, data::PadCollate{},
                            {.batch_size = 2, .workers = 0});
    train::Trace trace;
    auto const record = trainer.fit(loader, {.trace = traces ? &trace : nullptr});
    Observed observed;
    for (auto const& bucket : record.session.buckets) {
      if (bucket.table_bytes == 0) continue;
      CHECK(bucket.ready > 0);
      observed.tables.emplace_back(bucket.bytes, bucket.table_bytes);
      observed.sent = observed.sent || bucket.start != 0;
    }
    auto const look_at = [&](Timeline const& timeline) {
      for (std::size_t i = 0; i < timeline.size(); ++i) {
        if (timeline[i].kind != Span::Kind::bucket) continue;
        CHECK(timeline[i].begin > 0);
        observed.traced = true;
      }
    };
    look_at(trace.training());
    if (traces) look_at(trace.device(0));
    return observed;
  };
  auto const expected = tables_of(parallel::SingleDevice{.threads = 1}, false);
  CHECK(expected.tables.size() == 1);
  launch::run({}, [&](launch::World& world) {
    auto const alone = tables_of(
        parallel::DistributedDataParallel{comm::connect(world), 4096, 1, parallel::BufferPolicy::first}, true);
    CHECK(alone.tables == expected.tables);
    CHECK_FALSE(alone.sent);
    CHECK(alone.traced);
    return 0;
  });
}

TEST_CASE("rows in no text do not change on request, and shrink by default") {
  optim::AdamW adamw{.learning_rate = 1e-2};
  auto const follow = train_with(parallel::SingleDevice{.threads = 1}, adamw, nn::GradientForm::by_rows);
  adamw.untouched_rows = optim::UntouchedRows::skip;
  auto const stay = train_with(parallel::SingleDevice{.threads = 1}, adamw, nn::GradientForm::by_rows);
  CHECK(stay == train_with(parallel::DataParallel{.devices = 1, .threads = 1}, adamw, nn::GradientForm::by_rows));
  for (int shards : {2, 3})
    CHECK(ddp(shards, adamw, nn::GradientForm::by_rows) ==
          train_with(parallel::DataParallel{.devices = shards, .threads = 1}, adamw, nn::GradientForm::by_rows));
  auto model = bag_of_words(nn::GradientForm::by_rows);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> start(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 7, start.data());
  std::vector<bool> occurs(words);
  for (auto const& text : texts(11))
    for (auto token : text.tokens) occurs[static_cast<std::size_t>(token)] = true;
  Index absent = 0;
  for (auto const& entry : layout.entries()) {
    if (entry.name != "embedding.token") continue;
    for (Index i = 0; i < entry.size; ++i) {
      auto const at = static_cast<std::size_t>(entry.offset + i);
      if (occurs[static_cast<std::size_t>(i / 8)]) continue;
      ++absent;
      CHECK(stay[at] == start[at]);
      CHECK(follow[at] != start[at]);
    }
  }
  CHECK(absent > 0);
}

namespace {

/// Marks which of its parameters a sample uses.
struct Use {
  int row = 0, dense = 1;
};
/// A row-sparse table, a dense parameter, and for each one without elements, which every sample uses.
class AdjacentTables {
 public:
  void visit(auto&& each) {
    each("table", table_), each("none", none_), each("dense", dense_), each("nothing", nothing_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    double sum = 0;
    auto const rows = batch[&Use::row].values, uses = batch[&Use::dense].values;
    for (auto const* empty : {&none_, &nothing_}) {
      auto const out = context.template variable<1>({0});
      context.on_backward(out, std::tie(*empty), [empty](Context& c) { static_cast<void>(c.gradient(*empty)); });
      static_cast<void>(context.gradient(out));
    }
    for (Index i = 0; i < batch.rows(); ++i) {
      auto const looked_up = context.template variable<1>({4});
      context.on_backward(looked_up, std::tie(table_), [this, row = rows(i)](Context& c) {
        auto const to = c.gradient_by_rows(table_);
        bool const adds = to.touched.words ? to.touched.contains(row) : to.write == Write::add;
        for (Index k = 0; k < 4; ++k) to.data[row * 4 + k] = (adds ? to.data[row * 4 + k] : 0.f) + 1;
        if (to.touched.words) to.touched.insert(row);
      });
      static_cast<void>(context.gradient(looked_up));
      if (uses(i) == 0) continue;
      auto const used = context.template variable<1>({20});
      context.on_backward(used, std::tie(dense_), [this](Context& c) {
        auto const to = c.gradient(dense_);
        for (Index k = 0; k < 20; ++k) to.data[k] = (to.write == Write::add ? to.data[k] : 0.f) + 1;
      });
      static_cast<void>(context.gradient(used));
      sum += 1;
    }
    return {sum, static_cast<double>(batch.rows())};
  }

 private:
  nn::Parameter table_{
      .shape = {9, 4}, .initializer = nn::Initializer::constant(0), .gradient_form = nn::GradientForm::by_rows};
  nn::Parameter none_{{0}, nn::Initializer::constant(0)}, dense_{{20}, nn::Initializer::constant(0)};
  nn::Parameter nothing_{{0}, nn::Initializer::constant(0)};
};

}  // namespace

TEST_CASE("a parameter without elements does not affect adjacent ones, for any form of gradient") {
  auto const trained = [](auto policy, std::size_t shards) {
    Trainer trainer{AdjacentTables{}, optim::SGD{.learning_rate = 1}, std::move(policy)};
    for (auto const& step : {std::vector<Use>{{1, 1}, {2, 0}}, {{3, 0}, {3, 0}}, {{4, 1}, {5, 0}}}) {
      if (shards == 1) {
        trainer.step(data::Collated{data::PadCollate{}, step});
        continue;
      }
      std::vector<data::Collated<data::PadCollate, Use>> each;
      for (auto const& one : step) each.emplace_back(data::PadCollate{}, std::vector<Use>{one});
      std::vector<std::remove_cvref_t<decltype(each[0].batch())>> batches;
      for (auto const& one : each) batches.push_back(one.batch());
      trainer.step(batches);
    }
    std::vector<float> out;
    for (auto const& entry : trainer.layout().entries())
      for (Index i = 0; i < entry.size; i += 4)
        out.push_back(trainer.values()[static_cast<std::size_t>(entry.offset + i)]);
    return out;
  };
  // In each step's two samples half the gradient of the sum: rows 1 to 5, and the dense parameter's.
  std::vector<float> const expected{0, -0.5f, -0.5f, -1, -0.5f, -0.5f, 0, 0, 0, -1, -1, -1, -1, -1};
  CHECK(trained(parallel::SingleDevice{.threads = 1}, 1) == expected);
  CHECK(trained(parallel::DataParallel{.devices = 2, .threads = 1}, 2) == expected);
  CHECK(trained(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}, 2) == expected);
}

TEST_CASE(
    "averages of a table's rows approach their values in steps that do not touch them, for any form of gradient") {
  auto const averages = [](optim::SGD const& sgd, nn::GradientForm form) {
    Trainer trainer(bag_of_words(form), optim::Averaged{sgd, 0.9}, parallel::SingleDevice{.threads = 1}, 7);
    data::DataLoader loader(data::InMemoryDataset(texts(11)), data::ShuffledSampler{.seed = 3}, data::PadCollate{},
                            {.batch_size = 2, .workers = 0});
    trainer.fit(loader, {.epochs = 3});
    return train::averages(trainer);
  };
  for (double const momentum : {0.0, 0.5}) {
    optim::SGD const sgd{.learning_rate = 0.5, .momentum = momentum};
    CHECK(averages(sgd, nn::GradientForm::by_rows) == averages(sgd, nn::GradientForm::dense));
  }
}
