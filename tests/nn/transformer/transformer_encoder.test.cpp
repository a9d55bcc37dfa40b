// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/transformer_encoder.hpp>

#include <doctest/doctest.h>

#include "larger_error.hpp"
#include "malloc_count.hpp"
#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
nn::TransformerEncoder make(Index layers, double dropout = 0) {
  return nn::TransformerEncoder({.layers = layers, .width = 6, .heads = 2, .feed_forward = 10, .dropout = dropout});
}

struct Two {
  nn::TransformerEncoderLayer a{{.width = 6, .heads = 2, .feed_forward = 10}}, b = a;
  void visit(auto&& each) {
    each("0", a);
    each("1", b);
  }
  auto forward(auto& context, auto const& x) const { return b.forward(context, a.forward(context, x)); }
};
}  // namespace

TEST_CASE("gradients through several layers") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}};
  for (Index layers : {0, 1, 2}) {
    auto const result = check(make(layers, 0.1), 6, batch, apply, {.max_per_parameter = 16});
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("a stack equals its layers in sequence") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(make(2), 6, batch, apply, 1) == run<double>(Two{}, 6, batch, apply, 1));
}

TEST_CASE("by default there is no dropout") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(nn::TransformerEncoder({.layers = 2, .width = 6, .heads = 2, .feed_forward = 10}), 6, batch, apply,
                    1) == run<double>(make(2, 0), 6, batch, apply, 1));
}

TEST_CASE("each layer's attention has the requested rotary positions") {
  Batch const batch{.rows = 2, .length = 5, .lengths = {5, 3}};
  auto const make_turned = [](double base) {
    return nn::TransformerEncoder({.layers = 2, .width = 8, .heads = 2, .feed_forward = 10, .rotary_base = base});
  };
  auto const result = check(make_turned(50), 8, batch, apply, {.max_per_parameter = 16});
  CAPTURE(result.where);
  CHECK(result.ok());
  CHECK(run<double>(make_turned(50), 8, batch, apply, 1).loss != run<double>(make_turned(0), 8, batch, apply, 1).loss);
}

TEST_CASE("float results equal double's within rounding") {
  Batch const batch{.rows = 2, .length = 5, .lengths = {5, 2}};
  auto const exact = run<double>(make(2), 6, batch, apply, 1);
  auto const single = run<float>(make(2), 6, batch, apply, 1);
  // Each layer rounds a few hundred times (sums of at most 10 terms, some 30 operations deep), and each norm multiplies
  // an error by the reciprocal deviation, of order one here: 2 layers x 2 norms x 200 roundings of the scale.
  double scale = 0;
  for (double g : exact.gradients) scale = std::max(scale, std::abs(g));
  REQUIRE(exact.gradients.size() == single.gradients.size());
  double worst = 0;
  for (std::size_t i = 0; i < exact.gradients.size(); ++i)
    worst = lockstep_test::larger_error(worst, std::abs(exact.gradients[i] - static_cast<double>(single.gradients[i])));
  CHECK(worst <= 800 * 0x1p-24 * scale);
}

// A layer's backward needs query, key, value, attention's output before the projection, the sums before both norms, and
// gelu's input (or, with dropout, two tensors: the slopes and the dropped activation), each as large as its input.
TEST_CASE("a layer stores only what backward needs") {
  Batch const batch{.rows = 8, .length = 64};
  auto const held = [&](Index layers, double dropout, bool norm_first) {
    nn::TransformerEncoder const encoder(
        {.layers = layers, .width = 64, .heads = 2, .feed_forward = 64, .dropout = dropout, .norm_first = norm_first});
    Model model(encoder, batch.rows * batch.length, 64, apply);
    auto const layout = nn::ParameterLayout::of(model);
    auto const values = some_values<float>(layout);
    std::vector<float> gradients(values.size());
    lockstep::ThreadPool pool(1);
    nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
    context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
    for (int step = 0; step < 3; ++step) {
      nn::Pass(context).begin_step();
      nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
      static_cast<void>(model.forward(context, batch));
      nn::Pass(context).backward({});
    }
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 3);
    return static_cast<double>(nn::Pass(context).activation_bytes()) / (8 * 64 * 64 * sizeof(float));
  };
  // Also logarithms of sums and moments: two and four numbers per token, for 64 channels.
  double const little = 6.0 / 64 + 0.01;
  CHECK(held(5, 0, false) - held(3, 0, false) <= 2 * (7 + little));
  CHECK(held(5, 0.1, false) - held(3, 0.1, false) <= 2 * (8 + little));
  CHECK(held(5, 0, true) - held(3, 0, true) <= 2 * (7 + little));
}

TEST_CASE("a step with known shapes does not allocate") {
  Batch const batch{.rows = 4, .length = 9};
  Model model(make(2, 0.1), batch.rows * batch.length, 6, apply);
  auto const layout = nn::ParameterLayout::of(model);
  auto const values = some_values<float>(layout);
  std::vector<float> gradients(values.size());
  lockstep::ThreadPool pool(2);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
  auto const step = [&] {
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
    static_cast<void>(model.forward(context, batch));
    nn::Pass(context).backward({});
  };
  for (int i = 0; i < 3; ++i) step();
  auto const allocations = lockstep_test::mallocs.load();
  auto const bytes = nn::Pass(context).activation_bytes();
  for (int i = 0; i < 3; ++i) step();
  CHECK(lockstep_test::mallocs.load() == allocations);  // with a sanitizer nothing is counted
  CHECK(nn::Pass(context).activation_bytes() == bytes);
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(make(-1), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::TransformerEncoder({.layers = 1, .width = 6, .heads = 5, .feed_forward = 8}),
                  lockstep::ShapeError);
}
