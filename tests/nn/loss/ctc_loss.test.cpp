// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/ctc_loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/nn/linear/linear.hpp>

#include "larger_error.hpp"
#include "malloc_count.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::learned;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

/// Concatenated labels, as data::RaggedCollate makes from a std::vector.
struct Labels {
  struct Column {
    TensorView<std::int32_t const, 1, HostSpace> values;
    TensorView<Index const, 1, HostSpace> offsets;
    Index longest;
  };
  std::vector<std::int32_t> values;
  std::vector<Index> offsets{0};
  Index longest = 0;

  explicit Labels(std::vector<std::vector<std::int32_t>> const& rows) {
    for (auto const& row : rows) {
      values.insert(values.end(), row.begin(), row.end());
      offsets.push_back(std::ssize(values));
      longest = std::max<Index>(longest, std::ssize(row));
    }
  }
  [[nodiscard]] Column column() const {
    return {{values.data(), {std::ssize(values)}}, {offsets.data(), {std::ssize(offsets)}}, longest};
  }
};

/// Logits that are parameters.
struct Model {
  nn::Parameter logits;
  Labels labels;
  nn::CtcOptions options;
  int uses;
  Model(TokenBatch const& batch, Index classes, Labels of, nn::CtcOptions const& with = {}, int times = 1)
      : logits{{batch.rows * batch.length, classes}, nn::Initializer::normal(1)},
        labels(std::move(of)),
        options(with),
        uses(times) {}
  void visit(auto&& each) { each("logits", logits); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const x{learned(context, logits), batch.layout()};
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use) loss += nn::ctc_loss(context, x, labels.column(), options);
    return loss;
  }
};

TokenBatch const batch({6, 3, 1, 4, 0, 5}, 6, 11);
Labels const labels({{1, 2, 2}, {3, 1}, {2}, {}, {}, {1, 1, 1}});

/// By definition: the sum over all class sequences that reduce to the labels.
double probability(std::vector<double> const& logits, Index tokens, Index classes, Index blank,
                   std::vector<std::int32_t> const& wanted) {
  std::vector<double> p;
  for (Index t = 0; t < tokens; ++t) {
    double sum = 0;
    for (Index k = 0; k < classes; ++k) sum += std::exp(logits[static_cast<std::size_t>(t * classes + k)]);
    for (Index k = 0; k < classes; ++k) p.push_back(std::exp(logits[static_cast<std::size_t>(t * classes + k)]) / sum);
  }
  Index ways = 1;
  for (Index t = 0; t < tokens; ++t) ways *= classes;
  double total = 0;
  for (Index way = 0; way < ways; ++way) {
    std::vector<std::int32_t> read;
    double all = 1;
    Index rest = way, before = blank;
    for (Index t = 0; t < tokens; ++t, rest /= classes) {
      auto const k = rest % classes;
      all *= p[static_cast<std::size_t>(t * classes + k)];
      if (k != blank && k != before) read.push_back(static_cast<std::int32_t>(k));
      before = k;
    }
    if (read == wanted) total += all;
  }
  return total;
}

std::string refusal(Labels const& of, nn::CtcOptions const& options = {}, TokenBatch const& tokens = batch) {
  Trial<Model, float> trial(Model(tokens, 4, of, options));
  try {
    trial.step(tokens);
  } catch (Error const& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the loss covers all paths that reduce to the labels") {
  std::vector<std::vector<std::int32_t>> const rows{{1, 2, 2}, {3, 1}, {2}, {}, {}, {1, 1, 1}};
  Trial<Model, double> trial(Model(batch, 4, labels));
  auto const loss = trial.step(batch);
  double expected = 0;
  for (Index row = 0; row < batch.rows; ++row) {
    std::vector<double> const logits(trial.values.begin() + row * 6 * 4, trial.values.begin() + (row + 1) * 6 * 4);
    auto const own = static_cast<std::size_t>(row);
    expected -= std::log(probability(logits, batch.lengths[own], 4, 0, rows[own]));
  }
  CHECK(loss.sum == doctest::Approx(expected).epsilon(1e-12));
  CHECK(loss.weight == 6);
  CHECK(trial.evaluate(batch).sum == loss.sum);
}

TEST_CASE("gradients, used once and twice, with a factor, another blank, and without padding") {
  for (int const uses : {1, 2})
    for (double const factor : {1.0, 0.3}) {
      auto const result = check_model(Model(batch, 4, labels, {.factor = factor}, uses), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  auto const last = check_model(Model(batch, 5, labels, {.blank = 4}), batch);
  CAPTURE(last.where);
  CHECK(last.ok());
  Trial<Model, double> trial(Model(batch, 4, labels));
  trial.step(batch);
  for (Index slot = 0; slot < 36; ++slot)
    for (Index k = 0; k < 4; ++k)
      if (!batch.layout().is_token(slot)) CHECK(trial.gradients[static_cast<std::size_t>(slot * 4 + k)] == 0);
}

TEST_CASE("the loss of each sequence is divided by its number of labels") {
  nn::CtcOptions const options{.factor = 3, .divisor = nn::CtcDivisor::labels};
  Trial<Model, double> divided(Model(batch, 4, labels, options)), whole(Model(batch, 4, labels));
  auto const loss = divided.step(batch);
  whole.step(batch);
  std::vector<double> const factors{1, 1.5, 3, 3, 3, 1};  // 3 divided by 3, 2, 1, 0, 0 and 3 labels
  double expected = 0;
  for (Index row = 0; row < batch.rows; ++row) {
    auto const own = static_cast<std::size_t>(row);
    std::vector<double> const logits(whole.values.begin() + row * 24, whole.values.begin() + (row + 1) * 24);
    std::vector<std::int32_t> const wanted(labels.values.begin() + labels.offsets[own],
                                           labels.values.begin() + labels.offsets[own + 1]);
    expected -= factors[own] * std::log(probability(logits, batch.lengths[own], 4, 0, wanted));
  }
  CHECK(loss.sum == doctest::Approx(expected).epsilon(1e-12));
  CHECK(loss.weight == 6);
  for (std::size_t i = 0; i < whole.gradients.size(); ++i)
    CHECK(divided.gradients[i] == doctest::Approx(factors[i / 24] * whole.gradients[i]).epsilon(1e-12));
  auto const result = check_model(Model(batch, 4, labels, options), batch);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("a float's gradient equals a double's within rounding, over many tokens with extreme values") {
  TokenBatch const many({300, 211}, 300, 11);
  std::vector<std::vector<std::int32_t>> texts(2);
  for (int i = 0; i < 60; ++i) texts[0].push_back(1 + i * 7 % 19), texts[1].push_back(1 + i * 5 % 19);
  Trial<Model, double> exact(Model(many, 20, Labels(texts)));
  Trial<Model, float> low(Model(many, 20, Labels(texts)));
  for (std::size_t i = 0; i < exact.values.size(); ++i)
    low.values[i] = static_cast<float>(exact.values[i] *= i % 7 == 0 ? 30 : 1), exact.values[i] = low.values[i];
  auto const a = exact.step(many), b = low.step(many);
  CHECK(std::abs(a.sum - b.sum) <= 1e-6 * a.sum);
  double most = 0;
  for (std::size_t i = 0; i < exact.gradients.size(); ++i)
    most = lockstep_test::larger_error(most, std::abs(exact.gradients[i] - static_cast<double>(low.gradients[i])));
  CAPTURE(most);
  // A token has a few roundings of numbers near the largest, and rounded results are inputs of the next token.
  CHECK(most <= 300 * 4 * 0x1p-24);
}

TEST_CASE("bits do not depend on threads, there are no allocations, and batches may be empty") {
  Trial<Model, float> one(Model(batch, 4, labels), 1), several(Model(batch, 4, labels), 4);
  CHECK(one.step(batch).sum == several.step(batch).sum);
  CHECK(std::memcmp(one.gradients.data(), several.gradients.data(), one.gradients.size() * sizeof(float)) == 0);
  auto const mallocs = lockstep_test::mallocs.load();
  one.step(batch);
  auto const counted = lockstep_test::mallocs - mallocs;
  CHECK(counted == 0);
  for (auto const& none : {TokenBatch({}, 6, 11), TokenBatch({0, 0}, 0, 11)}) {
    Trial<Model, float> trial(Model(none, 4, Labels(std::vector<std::vector<std::int32_t>>(none.lengths.size()))));
    CHECK(trial.step(none).sum == 0);
  }
}

TEST_CASE("sequences too short for their labels are refused, or ignored") {
  Labels const too_many({{1, 2, 2}, {3, 1, 1}, {2}, {}, {}, {1, 1, 1}});
  CHECK(refusal(too_many) ==
        "ctc_loss: row 1 of the batch has 3 labels, which need 4 tokens, including a blank between equal labels, and 3 "
        "tokens; let the model shorten sequences less, leave such samples out, or set CtcOptions::impossible");
  Trial<Model, double> with(Model(batch, 4, labels)),
      without(Model(batch, 4, too_many, {.impossible = kernel::ImpossibleAlignment::ignore}));
  with.step(batch);
  auto const loss = without.step(batch);
  CHECK(loss.weight == 5);
  CHECK(std::isfinite(loss.sum));
  for (std::size_t i = 0; i < with.gradients.size(); ++i)
    CHECK(without.gradients[i] == (i / 24 == 1 ? 0 : with.gradients[i]));
}

TEST_CASE("invalid inputs are refused") {
  CHECK(refusal(Labels({{1}, {4}, {}, {}, {}, {}})) ==
        "ctc_loss: row 1 of the batch has the label 4, outside [0, 4) without the blank; number the labels around the "
        "blank, or give the model as many outputs as there are classes");
  CHECK(refusal(Labels({{1}, {0}, {}, {}, {}, {}})) ==
        "ctc_loss: row 1 of the batch has the label 0, the blank, outside [0, 4) without the blank; number the labels "
        "around the blank, or give the model as many outputs as there are classes");
  CHECK(refusal(labels, {.blank = 4}) == "ctc_loss: the blank is 4 and there are 4 classes; it must be one of them");
  CHECK(refusal(Labels({{1}, {2}})) == "sequences: 3 offsets and 6 positions; there is one offset more than rows");
}
