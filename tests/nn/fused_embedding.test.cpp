// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/fused_embedding.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <lockstep/nn/pooling.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

struct Pooled {
  nn::FusedEmbedding embedding;
  explicit Pooled(double dropout) : embedding({.vocabulary = 11, .length = 9, .width = 6, .dropout = dropout}) {}
  void visit(auto&& each) { each("embedding", embedding); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = embedding.forward(context, batch.tokens(), batch.places());
    return lockstep_test::irregular_loss(context, nn::mean_pool(context, x));
  }
};

/// The same tables twice in one pass, as tied weights are.
struct Twice : Pooled {
  using Pooled::Pooled;
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto loss = Pooled::forward(context, batch);
    loss += Pooled::forward(context, batch);
    return loss;
  }
};

TokenBatch const mixed({4, 0, 1, 9, 3}, 9, 11);

}  // namespace

TEST_CASE("parameters: names, shapes and start") {
  Pooled model(0);
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == 2);
  CHECK(layout.entries()[0].name == "embedding.token");
  CHECK(layout.entries()[0].shape == std::vector<Index>{11, 6});
  CHECK(layout.entries()[1].name == "embedding.position");
  CHECK(layout.entries()[1].shape == std::vector<Index>{9, 6});
  for (auto const& entry : layout.entries()) {
    CHECK(entry.initializer.kind == nn::Initializer::Kind::normal);
    CHECK(entry.initializer.scale == 0.02);
  }
}

TEST_CASE("gradients, with and without dropout, once and twice in a pass") {
  for (double dropout : {0.0, 0.4}) {
    auto const once = check_model(Pooled(dropout), mixed), twice = check_model(Twice(dropout), mixed);
    CAPTURE(once.where);
    CAPTURE(twice.where);
    CHECK(once.ok());
    CHECK(twice.ok());
    CHECK(once.checked == 11 * 6 + 9 * 6);
  }
}

TEST_CASE("batches without rows or without tokens give zero gradients") {
  for (auto const& batch :
       {TokenBatch({}, 9, 11), TokenBatch({}, 0, 11), TokenBatch({0, 0}, 9, 11), TokenBatch({0}, 0, 11)}) {
    Trial<Pooled, float> trial(Pooled(0.1));
    trial.gradients.assign(trial.gradients.size(), 5.0f);
    trial.step(batch);
    for (auto const& entry : trial.layout.entries())
      for (Index i = 0; i < entry.size; ++i) CHECK(trial.gradients[static_cast<std::size_t>(entry.offset + i)] == 0);
  }
}

TEST_CASE("the padding id is a row like any other and gets nothing from padding") {
  Trial<Pooled, float> trial(Pooled(0.1));
  trial.step(mixed);
  auto const token = trial.layout.entries()[0];
  bool others = false;
  for (Index i = 0; i < token.size; ++i) {
    auto const g = trial.gradients[static_cast<std::size_t>(token.offset + i)];
    if (i < 6) CHECK(g == 0);
    others = others || g != 0;
  }
  CHECK(others);
}

TEST_CASE("evaluation drops nothing and records nothing") {
  Trial<Pooled, double> with(Pooled(0.4)), without(Pooled(0));
  CHECK(with.evaluate(mixed).sum == without.evaluate(mixed).sum);
  CHECK(with.evaluate(mixed).sum == without.step(mixed).sum);
  CHECK(with.step(mixed).sum != without.step(mixed).sum);
  CHECK(with.step(mixed, 1).sum != with.step(mixed, 2).sum);
}

TEST_CASE("loss and gradients have the same bits for any number of threads") {
  Trial<Pooled, float> one(Pooled(0.2), 1);
  auto const loss = one.step(mixed).sum;
  for (int threads : {2, 3, 4}) {
    Trial<Pooled, float> trial(Pooled(0.2), threads);
    for (int repetition = 0; repetition < 3; ++repetition) {
      CHECK(trial.step(mixed).sum == loss);
      CHECK(trial.gradients == one.gradients);
    }
  }
}

TEST_CASE("one model serves several contexts at once") {
  Trial<Pooled, float> reference(Pooled(0.2));
  auto const loss = reference.step(mixed).sum;
  std::vector<double> losses(2);
  std::vector<std::vector<float>> gradients(2, reference.gradients);
  std::vector<std::thread> replicas;
  for (std::size_t replica = 0; replica < 2; ++replica)
    replicas.emplace_back([&, replica] {
      ThreadPool pool(1);
      nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
      context.bind(reference.values.data(), gradients[replica].data(), reference.layout.entries().size());
      for (int repetition = 0; repetition < 20; ++repetition) {
        context.begin_step();
        context.begin_micro_batch(nn::Mode::training, 1);
        losses[replica] = reference.model.forward(context, mixed).sum;
        context.backward({});
      }
    });
  for (auto& replica : replicas) replica.join();
  CHECK(losses == std::vector<double>{loss, loss});
  for (auto const& g : gradients) CHECK(g == reference.gradients);
}

TEST_CASE("bad options and columns are refused") {
  auto const make = [](nn::FusedEmbedding::Options const& options) { nn::FusedEmbedding const made(options); };
  CHECK_THROWS_WITH_AS(make({.vocabulary = 0, .length = 1, .width = 1}), doctest::Contains("vocabulary is 0"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(make({.vocabulary = 1, .length = -2, .width = 1}), doctest::Contains("length is -2"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(make({.vocabulary = 1, .length = 1, .width = 0}), doctest::Contains("width is 0"), ConfigError);
  CHECK_THROWS_AS(make({.vocabulary = 1, .length = 1, .width = 1, .dropout = 1}), ConfigError);

  auto bad = mixed;
  bad.positions.pop_back();
  Trial<Pooled, float> trial(Pooled(0));
  auto const positions = TensorView<Index const, 1, HostSpace>(bad.positions.data(), {4});
  CHECK_THROWS_WITH_AS(static_cast<void>(trial.model.embedding.forward(trial.context(), mixed.tokens(), positions)),
                       doctest::Contains("5 rows of ids, 5 lengths and 4 positions"), ShapeError);
  bad = mixed;
  bad.ids[2] = 11;
  CHECK_THROWS_AS(trial.step(bad), DataError);
}
