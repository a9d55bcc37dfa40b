// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

struct Column {
  TensorView<std::int32_t const, 1, HostSpace> values;
};

struct Model {
  nn::Parameter logits;
  int uses;
  Model(TokenBatch const& batch, Index classes, int times = 1)
      : logits{{batch.rows, classes}, nn::Initializer::normal(2)}, uses(times) {}
  void visit(auto&& each) { each("logits", logits); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = lockstep_test::learned(context, logits);
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use) loss += nn::cross_entropy(context, x, Column{batch.classes()});
    return loss;
  }
};

TokenBatch const batch({1, 1, 1, 1, 1}, 1, 11);

}  // namespace

TEST_CASE("cross_entropy: gradients, used once and twice") {
  for (Index classes : {3, 4, 40})
    for (int uses : {1, 2}) {
      auto const result = check_model(Model(batch, classes, uses), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("cross_entropy: a sum with the rows as weight, the same in evaluation") {
  Trial<Model, double> trial(Model(batch, 4));
  std::fill(trial.values.begin(), trial.values.end(), 0.5);
  auto const loss = trial.step(batch);
  CHECK(loss.weight == 5);
  CHECK(loss.sum == doctest::Approx(5 * std::log(4.0)));
  CHECK(trial.evaluate(batch).sum == loss.sum);
  CHECK(loss.mean() == doctest::Approx(std::log(4.0)));
}

TEST_CASE("cross_entropy: no rows give nothing") {
  TokenBatch const none({}, 1, 11);
  Trial<Model, float> trial(Model(none, 4));
  auto const loss = trial.step(none);
  CHECK(loss.sum == 0);
  CHECK(loss.weight == 0);
}

TEST_CASE("cross_entropy: logits stay as they are, and other integers serve as labels") {
  Trial<Model, float> trial(Model(batch, 4));
  auto& context = trial.context();
  context.begin_micro_batch(nn::Mode::training, 1);
  auto const x = lockstep_test::learned(context, trial.model.logits);
  std::vector<float> const before(x.value.data, x.value.data + x.value.size());
  std::vector<std::int64_t> labels{0, 1, 2, 0, 1};
  auto const loss = nn::cross_entropy(context, x, TensorView<std::int64_t const, 1, HostSpace>(labels.data(), {5}));
  CHECK(std::equal(before.begin(), before.end(), x.value.data));
  enum class Topic : std::uint8_t { world, sports, business };
  std::vector<Topic> const topics{Topic::world, Topic::sports, Topic::business, Topic::world, Topic::sports};
  CHECK(nn::cross_entropy(context, x, TensorView<Topic const, 1, HostSpace>(topics.data(), {5})).sum == loss.sum);
  CHECK(loss.sum == trial.evaluate(batch).sum);
}

TEST_CASE("cross_entropy: a label outside the classes is refused") {
  Trial<Model, float> trial(Model(batch, 2));  // the batch's third row has label 2
  CHECK_THROWS_WITH_AS(trial.step(batch), doctest::Contains("row 2 of the batch has label 2, outside [0, 2)"),
                       DataError);
}
