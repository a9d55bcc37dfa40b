// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/cross_entropy.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "kernel/values.hpp"
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

namespace {
/// Shares of classes, whose sum is not 1 in some rows.
struct Shared : Model {
  using Model::Model;
  std::vector<float> shares = lockstep_test::values<float>(5 * logits.shape[1], 4), factors{1, -0.5f, 0, 2, 0.25f};
  double smoothing = 0;
  void make() {
    for (auto& share : shares) share = share * share;
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const&) const {
    auto const x = lockstep_test::learned(context, logits);
    TensorView<float const, 2, HostSpace> const q(shares.data(), x.value.extent);
    auto loss = nn::cross_entropy(context, x, q, {.label_smoothing = smoothing, .factor = 0.5});
    if (uses > 1) loss += nn::cross_entropy(context, x, q, TensorView<float const, 1, HostSpace>(factors.data(), {5}));
    return loss;
  }
};
}  // namespace

TEST_CASE("cross_entropy: shares of classes") {
  for (Index classes : {1, 3, 40, 300})
    for (int uses : {1, 2}) {
      Shared model(batch, classes, uses);
      model.make();
      model.smoothing = uses > 1 ? 0.1 : 0;
      auto const result = check_model(model, batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  // A share of 1 equals a label; shares of 0.9 and 0.1 are a weighted mean of both labels.
  Trial<Shared, double> trial(Shared(batch, 4));
  auto& shares = trial.model.shares;
  std::fill(shares.begin(), shares.end(), 0.0f);
  for (std::size_t row = 0; row < 5; ++row) shares[4 * row + 2] = 0.75f, shares[4 * row + 1] = 0.25f;
  std::fill(trial.values.begin(), trial.values.end(), 0.5);
  auto const loss = trial.step(batch);
  CHECK(loss.weight == 5);
  CHECK(loss.sum == doctest::Approx(0.5 * 5 * std::log(4.0)));
  shares[7] = -1;
  CHECK_THROWS_WITH_AS(trial.step(batch), doctest::Contains("row 1 of the batch gives class 3 the share -1"), RowError);
}

namespace {
struct Factors {
  TensorView<float const, 1, HostSpace> values;
};
struct Weighted : Model {
  using Model::Model;
  std::vector<float> factors{1, -0.5f, 0, 2, 0.25f};
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& tokens) const {
    auto const x = lockstep_test::learned(context, logits);
    TensorView<float const, 1, HostSpace> const view(factors.data(), {5});
    auto loss = nn::cross_entropy(context, x, Column{tokens.classes()}, Factors{view});
    if (uses > 1) loss += nn::cross_entropy(context, x, tokens.classes(), view, {.label_smoothing = 0.1});
    return loss;
  }
};
}  // namespace

TEST_CASE("cross_entropy: row factors apply to loss and gradient and not to the weight") {
  for (int uses : {1, 2}) {
    auto const result = check_model(Weighted(batch, 4, uses), batch);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
  Trial<Weighted, double> trial(Weighted(batch, 4));
  std::fill(trial.values.begin(), trial.values.end(), 0.5);
  auto const loss = trial.step(batch);
  CHECK(loss.weight == 5);
  CHECK(loss.sum == doctest::Approx((1 - 0.5 + 0 + 2 + 0.25) * std::log(4.0)));
}

TEST_CASE("cross_entropy: a sum with the rows as weight, equal in evaluation") {
  Trial<Model, double> trial(Model(batch, 4));
  std::fill(trial.values.begin(), trial.values.end(), 0.5);
  auto const loss = trial.step(batch);
  CHECK(loss.weight == 5);
  CHECK(loss.sum == doctest::Approx(5 * std::log(4.0)));
  CHECK(trial.evaluate(batch).sum == loss.sum);
  CHECK(loss.mean() == doctest::Approx(std::log(4.0)));
}

TEST_CASE("cross_entropy: without rows the loss is zero") {
  TokenBatch const none({}, 1, 11);
  Trial<Model, float> trial(Model(none, 4));
  auto const loss = trial.step(none);
  CHECK(loss.sum == 0);
  CHECK(loss.weight == 0);
}

TEST_CASE("cross_entropy: logits are unchanged, and other integer types are valid labels") {
  Trial<Model, float> trial(Model(batch, 4));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
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

TEST_CASE("cross_entropy: an absent label is refused unless ignored labels are enabled") {
  struct Optional : Column {
    TensorView<bool const, 1, HostSpace> present;
  };
  Trial<Model, float> trial{Model(batch, 3)};
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(context, trial.model.logits);
  std::array<std::int32_t, 5> labels{1, 0, 2, 0, 1};
  std::array<bool, 5> present{true, true, true, false, true};
  Optional const column{{{labels.data(), {5}}}, {present.data(), {5}}};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::cross_entropy(context, x, column)),
      "cross_entropy, labels: row 3 of the batch has no value: its std::optional is empty, and training would "
      "use 0; data::PadCollate{.value = -1} writes -1 there, and {.ignored = -1} leaves it out of the loss",
      RowError);
  std::array<float, 5> const factors{1, 1, 1, 1, 1};
  TensorView<float const, 1, HostSpace> const by(factors.data(), {5});
  CHECK_THROWS_AS(static_cast<void>(nn::cross_entropy(context, x, column, by)), RowError);
  labels[3] = -1;
  CHECK_THROWS_AS(static_cast<void>(nn::cross_entropy(context, x, column)), RowError);
  CHECK(nn::cross_entropy(context, x, column, {.ignored = -1}).weight == 4);
  labels[3] = 0, present[3] = true;
  CHECK(nn::cross_entropy(context, x, column).weight == 5);
}

TEST_CASE("cross_entropy: a label outside the classes is refused") {
  Trial<Model, float> trial(Model(batch, 2));  // the batch's third row has label 2
  CHECK_THROWS_WITH_AS(trial.step(batch), doctest::Contains("row 2 of the batch has label 2, outside [0, 2)"),
                       DataError);
}

namespace {

/// One label per token.
struct Tagger {
  nn::Parameter logits;
  std::vector<std::int32_t> labels;
  std::vector<float> weights{0.5f, 2, 1};
  nn::CrossEntropyOptions options{};
  nn::SequenceLayout<HostSpace> layout;

  Tagger(nn::SequenceLayout<HostSpace> l, nn::CrossEntropyOptions const& o)
      : logits{{l.slots, 3}, nn::Initializer::normal(1)}, options(o), layout(l) {
    for (Index slot = 0; slot < l.slots; ++slot)
      labels.push_back(l.is_token(slot) ? static_cast<std::int32_t>((slot - l.start(l.row_of(slot))) % 3) : 1 << 20);
  }
  void visit(auto&& each) { each("logits", logits); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const&) const {
    auto with_weights = options;
    with_weights.class_weights = weights;
    nn::SequenceOf<Context> const x{lockstep_test::learned(context, logits), layout};
    if (layout.is_ragged())
      return nn::cross_entropy(context, x, TensorView<std::int32_t const, 1, HostSpace>(labels.data(), {layout.slots}),
                               with_weights);
    return nn::cross_entropy(context, x,
                             TensorView<std::int32_t const, 2, HostSpace>(labels.data(), {layout.rows, layout.length}),
                             with_weights);
  }
};

}  // namespace

TEST_CASE("cross_entropy: per token, padded and ragged, with weights, smoothing, an ignored label and a factor") {
  TokenBatch const tokens({4, 0, 1, 2}, 4, 11);
  std::vector<Index> const offsets{0, 4, 4, 5, 7};
  auto const ragged = nn::SequenceLayout<HostSpace>::ragged(7, 4, {offsets.data(), {5}}, tokens.places());
  for (auto const& options :
       {nn::CrossEntropyOptions{}, nn::CrossEntropyOptions{.label_smoothing = 0.2, .ignored = 2, .factor = 0.3}}) {
    std::vector<nn::Loss<HostSpace>> losses;
    for (auto const& layout : {tokens.layout(), ragged}) {
      auto const result = check_model(Tagger(layout, options), tokens);
      CAPTURE(result.where);
      CHECK(result.ok());
      Trial<Tagger, double> trial(Tagger(layout, options));
      std::fill(trial.values.begin(), trial.values.end(), 0.25);
      losses.push_back(trial.step(tokens));
    }
    // Labels of the tokens: 0 1 2 0, 0, 0 1.
    CHECK(losses[0].weight == 4 * 0.5 + 2 * 2 + (options.ignored ? 0 : 1));
    CHECK(losses[1].weight == losses[0].weight);
    CHECK(losses[1].sum == doctest::Approx(losses[0].sum));
  }
}

TEST_CASE("cross_entropy: a label for each slot is required") {
  TokenBatch const tokens({4, 2}, 4, 11);
  Tagger model(tokens.layout(), {});
  model.layout.length = 3;
  Trial<Tagger, float> trial(model);
  CHECK_THROWS_WITH_AS(trial.step(tokens), doctest::Contains("logits are [8, 3] and there are 6 labels"), ShapeError);
}
