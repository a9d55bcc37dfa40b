// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/attention/attention.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <lockstep/nn/attention/relative_position_bias.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

/// Attention over a learned sequence, so that the gradient of its input is checked, too.
struct Model {
  nn::Parameter x;
  nn::MultiHeadAttention attention;
  Model(TokenBatch const& batch, nn::MultiHeadAttention::Options const& options)
      : x{{batch.rows * batch.length, options.width}, nn::Initializer::normal(1)}, attention(options) {}
  Model(TokenBatch const& batch, Index width, Index heads, double dropout)
      : Model(batch, {.width = width, .heads = heads, .dropout = dropout}) {}
  void visit(auto&& each) {
    each("x", x);
    each("attention", attention);
  }
  template <class Context>
  auto mixed(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{lockstep_test::learned(context, x), batch.layout()};
    return attention.forward(context, in);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const layout = batch.layout();
    return lockstep_test::irregular_loss(context, mixed(context, batch).tokens, &layout);
  }
};

/// Attention twice in sequence to another learned sequence, with one bias that both layers share.
struct CrossModel {
  nn::Parameter x, memory;
  nn::MultiHeadAttention first, second;
  nn::RelativePositionBias bias;
  nn::SequenceLayout<HostSpace> queries, keys;
  CrossModel(nn::SequenceLayout<HostSpace> query_layout, nn::SequenceLayout<HostSpace> key_layout,
             nn::MultiHeadAttention::Options const& options)
      : x{{query_layout.slots, options.width}, nn::Initializer::normal(1)},
        memory{{key_layout.slots, options.width}, nn::Initializer::normal(1)},
        first(options),
        second(options),
        bias({.heads = options.heads, .buckets = 6, .farthest = 5, .causal = options.causal}),
        queries(query_layout),
        keys(key_layout) {}
  void visit(auto&& each) {
    each("x", x);
    each("memory", memory);
    each("bias", bias);
    each("first", first);
    each("second", second);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const&) const {
    using Sequence = nn::SequenceOf<Context>;
    Sequence const to{lockstep_test::learned(context, memory), keys};
    auto const distances = bias.forward(context, queries, keys);
    auto const once = first.forward(context, Sequence{lockstep_test::learned(context, x), queries}, to, distances);
    return lockstep_test::irregular_loss(context, second.forward(context, once, to, distances).tokens, &queries);
  }
};

TokenBatch const mixed_lengths({5, 0, 1, 9, 3}, 9, 11);

}  // namespace

TEST_CASE("attention layer: parameter names and initial values") {
  Model model(mixed_lengths, 8, 2, 0);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<std::string> names;
  for (auto const& entry : layout.entries()) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"x", "attention.query.weight", "attention.query.bias", "attention.key.weight",
                                          "attention.key.bias", "attention.value.weight", "attention.value.bias",
                                          "attention.output.weight", "attention.output.bias"});
}

TEST_CASE("attention layer: gradients, with and without dropout") {
  for (double dropout : {0.0, 0.3})
    for (Index heads : {1, 2, 6}) {
      auto const result = check_model(Model(mixed_lengths, 6, heads, dropout), mixed_lengths);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("attention layer: gradients over more than one block of queries") {
  TokenBatch const batch({130}, 132, 11);
  auto const result = check_model(Model(batch, 4, 2, 0.2), batch);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("attention layer: gradients of causal attention") {
  TokenBatch const more_than_a_block({40}, 41, 11);
  for (auto const* batch : {&mixed_lengths, &more_than_a_block})
    for (double dropout : {0.0, 0.3}) {
      auto const result =
          check_model(Model(*batch, {.width = 6, .heads = 2, .dropout = dropout, .causal = true}), *batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("attention layer: gradients with rotary positions, and of heads that share keys") {
  for (Index key_heads : {0, 1, 2})
    for (double dropout : {0.0, 0.3}) {
      auto const result = check_model(Model(mixed_lengths, {.width = 8,
                                                            .heads = 4,
                                                            .dropout = dropout,
                                                            .causal = key_heads == 2,
                                                            .rotary_base = key_heads == 1 ? 0.0 : 20.0,
                                                            .key_heads = key_heads}),
                                      mixed_lengths);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  Model model(mixed_lengths, {.width = 8, .heads = 4, .key_heads = 2});
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.entries()[1].shape == std::vector<Index>{8, 8});  // query weight
  CHECK(layout.entries()[3].shape == std::vector<Index>{4, 8});  // key weight
}

TEST_CASE("attention layer: rotary positions encode relative, not absolute positions") {
  Index const width = 8, length = 6;
  // Returns the output of the second of two tokens at this distance, after `skipped` tokens of zeros and before others.
  auto const second_token = [&](Index skipped, Index distance, double base) {
    TokenBatch const batch({static_cast<std::int32_t>(length)}, length, 11);
    Trial<Model, double> trial(Model(batch, {.width = width, .heads = 2, .bias = nn::Bias::none, .rotary_base = base}));
    auto const& x = trial.layout.entries()[0];
    for (Index i = 0; i < length; ++i)
      for (Index c = 0; c < width; ++c)
        trial.values[static_cast<std::size_t>(x.offset + i * width + c)] =
            i == skipped || i == skipped + distance ? std::sin(static_cast<double>((i == skipped ? 0 : 10) + c)) : 0;
    nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
    auto const y = trial.model.mixed(trial.context(), batch).tokens.value;
    return std::vector<double>(y.data + (skipped + distance) * width, y.data + (skipped + distance + 1) * width);
  };
  auto const off = [](std::vector<double> const& a, std::vector<double> const& b) {
    double most = 0;
    for (std::size_t c = 0; c < a.size(); ++c) most = std::max(most, std::abs(a[c] - b[c]));
    return most;
  };
  auto const none = second_token(0, 2, 0), turned = second_token(0, 2, 30);
  CHECK(off(none, second_token(3, 2, 0)) < 1e-12);
  CHECK(off(none, second_token(0, 4, 0)) < 1e-12);
  CHECK(off(turned, second_token(3, 2, 30)) < 1e-12);
  CHECK(off(turned, second_token(0, 4, 30)) > 1e-4);
  CHECK(off(turned, none) > 1e-4);
}

TEST_CASE("attention layer: causal attention does not look ahead") {
  TokenBatch const batch({40}, 40, 11);
  auto const tokens = [&](bool causal, float last) {
    Trial<Model, float> trial(Model(batch, {.width = 6, .heads = 2, .causal = causal}));
    trial.values[static_cast<std::size_t>(trial.layout.entries()[0].offset + 39 * 6)] = last;
    nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
    auto const y = trial.model.mixed(trial.context(), batch).tokens.value;
    return std::vector<float>(y.data, y.data + y.size());
  };
  auto const first_difference = [&](bool causal) {
    auto const one = tokens(causal, 1), other = tokens(causal, 2);
    return std::mismatch(one.begin(), one.end(), other.begin()).first - one.begin();
  };
  CHECK(first_difference(true) / 6 == 39);
  CHECK(first_difference(false) / 6 == 0);
}

TEST_CASE("attention layer: gradients of attention to other sequences, through a shared bias") {
  TokenBatch const other({3, 4, 7, 0, 2}, 7, 11);
  std::vector<Index> const from{0, 5, 5, 6, 15, 18}, to{0, 3, 7, 14, 14, 16};
  auto const ragged = [](std::vector<Index> const& offsets, Index longest) {
    return nn::SequenceLayout<HostSpace>::ragged(offsets.back(), longest, {offsets.data(), {6}},
                                                 mixed_lengths.places());
  };
  for (double dropout : {0.0, 0.3})
    for (bool causal : {false, true})
      for (auto const& [queries, keys] : {std::pair{mixed_lengths.layout(), other.layout()},
                                          {ragged(from, 9), ragged(to, 7)},
                                          {mixed_lengths.layout(), ragged(to, 7)}}) {
        auto const result = check_model(CrossModel(queries, keys,
                                                   {.width = 6,
                                                    .heads = 2,
                                                    .dropout = dropout,
                                                    .causal = causal,
                                                    .bias = nn::Bias::none,
                                                    .head_width = 5,
                                                    .scale = 0.7}),
                                        mixed_lengths);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
}

TEST_CASE("attention layer: options change names and shapes") {
  auto const entries = [](nn::MultiHeadAttention::Options const& options) {
    Model model(mixed_lengths, options);
    std::string all;
    auto const layout = nn::ParameterLayout::of(model);
    for (auto const& entry : layout.entries())
      all += entry.name + "[" + std::to_string(entry.shape[0]) + "," +
             (entry.shape.size() > 1 ? std::to_string(entry.shape[1]) : "") + "] ";
    return all;
  };
  CHECK(entries({.width = 6, .heads = 2, .bias = nn::Bias::none, .head_width = 5}) ==
        "x[45,6] attention.query.weight[10,6] attention.key.weight[10,6] attention.value.weight[10,6] "
        "attention.output.weight[6,10] ");
}

TEST_CASE(
    "attention layer: by default heads divide the width, scores are divided by its root, and all tokens are visible") {
  auto const loss = [](nn::MultiHeadAttention::Options const& options) {
    return Trial<Model, double>(Model(mixed_lengths, options)).step(mixed_lengths).sum;
  };
  auto const scale = 1 / std::sqrt(3.0);
  CHECK(loss({.width = 6, .heads = 2}) ==
        loss({.width = 6, .heads = 2, .causal = false, .head_width = 3, .scale = scale}));
  CHECK(loss({.width = 6, .heads = 2}) != loss({.width = 6, .heads = 2, .scale = 2 * scale}));
}

TEST_CASE("attention layer: with nothing to attend to, the output is its bias") {
  TokenBatch const queries({2}, 2, 11), nothing({0}, 3, 11);
  CrossModel model(queries.layout(), nothing.layout(), {.width = 4, .heads = 2});
  Trial<CrossModel, float> trial(model);
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto& c = trial.context();
  using Sequence = nn::Sequence<float, HostSpace>;
  auto const y = trial.model.first.forward(c, Sequence{lockstep_test::learned(c, trial.model.x), queries.layout()},
                                           Sequence{lockstep_test::learned(c, trial.model.memory), nothing.layout()});
  auto const entry = std::find_if(trial.layout.entries().begin(), trial.layout.entries().end(),
                                  [](auto const& e) { return e.name == "first.output.bias"; });
  REQUIRE(entry != trial.layout.entries().end());
  for (Index i = 0; i < y.tokens.value.size(); ++i)
    CHECK(y.tokens.value.data[i] == trial.values[static_cast<std::size_t>(entry->offset + i % 4)]);
}

TEST_CASE("attention layer: batches without rows or tokens") {
  for (auto const& batch : {TokenBatch({}, 9, 11), TokenBatch({0, 0}, 9, 11), TokenBatch({0}, 0, 11)}) {
    Trial<Model, float> trial(Model(batch, 6, 2, 0.1));
    CHECK(trial.step(batch).sum == 0);
    for (float g : trial.gradients) CHECK(g == 0);
    Trial<CrossModel, float> with_bias(CrossModel(batch.layout(), batch.layout(), {.width = 6, .heads = 2}));
    CHECK(with_bias.step(batch).sum == 0);
    for (float g : with_bias.gradients) CHECK(g == 0);
  }
}

TEST_CASE("attention layer: values in padding change neither tokens nor gradients") {
  Trial<Model, float> one(Model(mixed_lengths, 6, 2, 0.2)), other(Model(mixed_lengths, 6, 2, 0.2));
  auto const& x = other.layout.entries()[0];
  for (Index i = 0; i < x.size; ++i)
    if (auto const slot = i / 6; slot % 9 >= mixed_lengths.lengths[static_cast<std::size_t>(slot / 9)])
      other.values[static_cast<std::size_t>(x.offset + i)] = 1e3f;
  CHECK(one.values != other.values);
  CHECK(one.step(mixed_lengths).sum == other.step(mixed_lengths).sum);
  CHECK(one.gradients == other.gradients);
}

TEST_CASE("attention layer: evaluation is the layer without dropout") {
  Trial<Model, double> with(Model(mixed_lengths, 6, 2, 0.4)), without(Model(mixed_lengths, 6, 2, 0));
  CHECK(with.evaluate(mixed_lengths).sum == without.step(mixed_lengths).sum);
  CHECK(with.step(mixed_lengths).sum != without.step(mixed_lengths).sum);
}

TEST_CASE("attention layer: bits are equal for any number of threads") {
  Trial<Model, float> one(Model(mixed_lengths, 24, 3, 0.2), 1);
  auto const loss = one.step(mixed_lengths).sum;
  for (int threads : {2, 3, 4}) {
    Trial<Model, float> trial(Model(mixed_lengths, 24, 3, 0.2), threads);
    for (int repetition = 0; repetition < 3; ++repetition) {
      CHECK(trial.step(mixed_lengths).sum == loss);
      CHECK(trial.gradients == one.gradients);
    }
  }
}

TEST_CASE("attention layer: bad options and inputs are refused with the numbers") {
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention({.width = 6, .heads = 4}),
                       doctest::Contains("4 heads do not divide a width of 6"), ShapeError);
  CHECK_THROWS_AS(nn::MultiHeadAttention({.width = 6, .heads = 0}), ShapeError);
  CHECK_THROWS_AS(nn::MultiHeadAttention({.width = 6, .heads = 2, .dropout = 1}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention({.width = 6, .heads = 2, .head_width = -1}),
                       "MultiHeadAttention: 2 heads of width -1; both must be at least 1", ConfigError);
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention({.width = 6, .heads = 0, .head_width = 3}),
                       doctest::Contains("0 heads of width 3"), ConfigError);
  CHECK_NOTHROW(nn::MultiHeadAttention({.width = 6, .heads = 1, .head_width = 1}));
  CHECK_THROWS_WITH_AS(
      nn::MultiHeadAttention({.width = 6, .heads = 3, .key_heads = 2}),
      "MultiHeadAttention: 2 key heads do not divide 3 heads; each key head must serve the same number of heads",
      ShapeError);
  CHECK_THROWS_AS(nn::MultiHeadAttention({.width = 6, .heads = 3, .key_heads = -3}), ShapeError);
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention({.width = 6, .heads = 2, .rotary_base = 100}),
                       doctest::Contains("heads are 3 channels wide; rotary positions turn two"), ShapeError);
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention({.width = 4, .heads = 2, .rotary_base = 1}),
                       doctest::Contains("rotary_base is 1; it must be above 1"), ConfigError);
  Model model(mixed_lengths, 6, 2, 0);
  model.attention = nn::MultiHeadAttention({.width = 8, .heads = 2});
  Trial<Model, float> trial(model);
  CHECK_THROWS_WITH_AS(trial.step(mixed_lengths), doctest::Contains("Linear attention.query: the input is"),
                       ShapeError);

  Trial<Model, float> named(Model(mixed_lengths, 6, 2, 0));
  TokenBatch const two({2, 1}, 2, 11), three({2, 2, 1}, 2, 11);
  auto const sequence = [&](TokenBatch const& batch) {
    return nn::Sequence<float, HostSpace>{named.context().variable<2>({batch.layout().slots, 6}), batch.layout()};
  };
  auto const refused = [&](TokenBatch const& from, Extents<2> bias, char const* sentence) {
    CHECK_THROWS_WITH_AS(static_cast<void>(named.model.attention.forward(named.context(), sequence(two), sequence(from),
                                                                         named.context().variable<2>(bias))),
                         doctest::Contains(sentence), ShapeError);
  };
  refused(three, {2, 3}, "MultiHeadAttention attention: 2 sequences attend to 3");
  refused(two, {2, 4}, "MultiHeadAttention attention: bias is [2, 4]; 2 heads and 3 distances need [2, 3]");
  Trial<Model, float> turned(Model(mixed_lengths, {.width = 6, .heads = 1, .rotary_base = 100}));
  auto& c = turned.context();
  nn::Sequence<float, HostSpace> const x{c.variable<2>({4, 6}), two.layout()}, y{c.variable<2>({4, 6}), two.layout()};
  CHECK_THROWS_WITH_AS(static_cast<void>(turned.model.attention.forward(c, x, y)),
                       doctest::Contains("rotary positions belong to one sequence"), ConfigError);
}

namespace {
struct Bare : Model {
  using Model::Model;
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& tokens) const {
    auto layout = tokens.layout();
    layout.positions = {};
    nn::SequenceOf<Context> const in{lockstep_test::learned(context, x), layout};
    return lockstep_test::irregular_loss(context, attention.forward(context, in).tokens, &layout);
  }
};
}  // namespace

TEST_CASE("attention layer: without dropout, sequences without positions can be attended to") {
  TokenBatch const batch({4, 2}, 4, 5);
  Trial<Model, double> with(Model(batch, 6, 2, 0));
  Trial<Bare, double> without(Bare(batch, 6, 2, 0));
  CHECK(without.step(batch).sum == with.step(batch).sum);
  CHECK(without.gradients == with.gradients);
  Trial<Bare, double> drops(Bare(batch, 6, 2, 0.5));
  CHECK_THROWS_WITH_AS(drops.step(batch), doctest::Contains("2 sequences and there are 0 positions"), ShapeError);
}
