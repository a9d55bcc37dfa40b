// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/transformer_decoder.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {

template <class Layers>
struct WithMemory {
  Layers layers;
  nn::Linear remember{6, 6};
  void visit(auto&& each) {
    each("layers", layers);
    each("remember", remember);
  }
};
auto const apply = [](auto& context, auto const& both, auto const& x) {
  return both.layers.forward(context, x, both.remember.forward(context, x));
};

WithMemory<nn::TransformerDecoder> make(Index layers, double dropout = 0, bool norm_first = false) {
  return {nn::TransformerDecoder(
      {.layers = layers, .width = 6, .heads = 2, .feed_forward = 10, .dropout = dropout, .norm_first = norm_first})};
}

struct Two {
  nn::TransformerDecoderLayer a{{.width = 6, .heads = 2, .feed_forward = 10}}, b = a;
  void visit(auto&& each) {
    each("0", a);
    each("1", b);
  }
  auto forward(auto& context, auto const& x, auto const& memory) const {
    return b.forward(context, a.forward(context, x, memory), memory);
  }
};

}  // namespace

TEST_CASE("gradients through several layers") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}};
  for (Index layers : {0, 1, 2})
    for (bool norm_first : {false, true}) {
      auto const result = check(make(layers, 0.1, norm_first), 6, batch, apply, {.max_per_parameter = 8});
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("a stack equals its layers in sequence, with one memory") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(make(2), 6, batch, apply, 1) == run<double>(WithMemory<Two>{}, 6, batch, apply, 1));
}

TEST_CASE("by default there is no dropout, and norms come last") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(WithMemory<nn::TransformerDecoder>{nn::TransformerDecoder(
                        {.layers = 2, .width = 6, .heads = 2, .feed_forward = 10})},
                    6, batch, apply, 1) == run<double>(make(2, 0, false), 6, batch, apply, 1));
}

TEST_CASE("a stack stores less for backward than separate layers, whose inputs others may read") {
  Batch const batch{.rows = 32, .length = 64};
  auto const held = [&](auto const& layers) {
    Model model(layers, batch.rows * batch.length, 6, apply);
    auto const layout = nn::ParameterLayout::of(model);
    auto const values = some_values<float>(layout);
    std::vector<float> gradients(values.size());
    lockstep::ThreadPool pool(1);
    nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
    context.parameters().bind(values.data(), gradients.data(), layout);
    for (int step = 0; step < 3; ++step) {
      nn::Pass(context).begin_step();
      nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
      static_cast<void>(model.forward(context, batch));
      nn::Pass(context).backward({});
    }
    return nn::Pass(context).activation_bytes();
  };
  CHECK(held(make(2)) + 32 * 64 * 6 * sizeof(float) <= held(WithMemory<Two>{}));
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(make(-1), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::TransformerDecoder({.layers = 1, .width = 6, .heads = 5, .feed_forward = 8}),
                  lockstep::ShapeError);
}
