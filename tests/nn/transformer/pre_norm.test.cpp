// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/pre_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/transformer/feed_forward.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
using FeedForward = nn::PreNorm<nn::RMSNorm, nn::FeedForward>;
FeedForward make(double dropout) { return {nn::RMSNorm(6), nn::FeedForward(6, 9, dropout), dropout}; }
auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };

/// A part that takes a number in addition to its input.
struct Shift {
  void visit(auto&&) {}
  template <class Context, class Sequence>
  Sequence forward(Context& context, Sequence const& x, double by) const {
    auto const y = context.template variable<2>(x.tokens.value.extent);
    std::fill_n(y.value.data, y.value.size(), by);
    return x.with(y);
  }
};

/// The layer from separate layers.
struct Parts {
  nn::RMSNorm norm{6};
  nn::FeedForward part;
  nn::Dropout dropout;
  void visit(auto&& each) {
    each("norm", norm);
    part.visit(each);
  }
  auto forward(auto& context, auto const& x) const {
    auto const y = part.forward(context, norm.forward(context, x));
    return nn::add(context, x, dropout.forward(context, y));
  }
};
}  // namespace

TEST_CASE("gradients") {
  for (double dropout : {0.0, 0.3}) {
    auto const result = check(make(dropout), 6, {.rows = 3, .length = 4, .lengths = {4, 0, 2}}, apply);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("it equals its parts in sequence, under their names") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 0, 2}};
  CHECK(run<double>(make(0.3), 6, batch, apply, 1) ==
        run<double>(Parts{.part = nn::FeedForward(6, 9, 0.3), .dropout = nn::Dropout(0.3)}, 6, batch, apply, 1));
  Model model(make(0), 1, 6, apply);
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.entries()[1].name == "layer.norm.weight");
  CHECK(layout.entries()[2].name == "layer.first.weight");
}

TEST_CASE("further arguments are passed to the part") {
  lockstep::ThreadPool pool(1);
  nn::Context<double, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  std::vector<double> const ones(16, 1.0);
  nn::PreNorm<nn::RMSNorm, Shift> layer(nn::RMSNorm(2), Shift{});
  auto const layout = nn::ParameterLayout::of(layer);
  context.parameters().bind(ones.data(), nullptr, layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  Batch const batch{.rows = 1, .length = 1};
  auto const x = context.variable<2>({1, 2});
  x.value.data[0] = 3;
  x.value.data[1] = 4;
  auto const y = layer.forward(context, nn::Sequence<double, HostSpace>{x, batch.layout()}, 10.0);
  CHECK(y.tokens.value.data[0] == 13);
  CHECK(y.tokens.value.data[1] == 14);
}

TEST_CASE("an invalid probability is refused") { CHECK_THROWS_AS(make(1), lockstep::ConfigError); }
