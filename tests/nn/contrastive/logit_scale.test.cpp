// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/logit_scale.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/train/files/safetensors.hpp>

#include "nn/layer_check.hpp"
#include "nn/space_check.hpp"
#include "temporary_folder.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, nn::LogitScale const& layer, auto const& x) { return layer.forward(context, x); };
/// Without a gradient of its own.
auto const of_input = [](auto& context, nn::LogitScale const& layer, auto const& x) {
  return layer.forward(context, x.with({x.tokens.value, nullptr}));
};
/// As in a model whose visit passes on `each`.
struct Named {
  nn::LogitScale scale{{.start = 5}};
  void visit(auto&& each) { scale.visit(each); }
};
}  // namespace

TEST_CASE("gradients of the number and of the input, for sequences and images") {
  for (Index rows : {1, 7}) {
    Batch const batch{.rows = rows, .length = 5};
    auto const result = check(nn::LogitScale{}, 33, batch, apply);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
  auto const image = space_check::trial<double>(nn::LogitScale{}, lockstep::Extents<4>{2, 4, 3, 5}, apply).check();
  CAPTURE(image.where);
  CHECK(image.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  Batch const batch{.rows = 70, .length = 5};
  auto const one = run<T>(nn::LogitScale{}, 33, batch, apply, 1);
  for (int threads : {2, 4}) CHECK(run<T>(nn::LogitScale{}, 33, batch, apply, threads) == one);
  CHECK(evaluate<T>(nn::LogitScale{}, 33, batch, apply) == one.loss);
  // The number's gradient does not depend on whether the input is learned, and grows with every micro-batch.
  auto const alone = run<T>(nn::LogitScale{}, 33, batch, of_input, 1);
  CHECK(alone.loss == one.loss);
  CHECK(alone.gradients[0] == one.gradients[0]);
  CHECK(run<T>(nn::LogitScale{}, 33, batch, apply, 1, 2).gradients[0] == 2 * one.gradients[0]);
}

TEST_CASE(
    "the parameter is one number named logit_scale, with CLIP's initial value, and PyTorch's files are compatible") {
  nn::LogitScale clip;
  auto const layout = nn::ParameterLayout::of(clip);
  REQUIRE(layout.entries().size() == 1);
  CHECK(layout.entries()[0].name == "logit_scale");
  CHECK(layout.entries()[0].shape.empty());
  auto values = nn::initial_values(layout, 1);
  CHECK(values[0] == static_cast<float>(std::log(1 / 0.07)));

  Named other;
  auto const of_other = nn::ParameterLayout::of(other);
  auto read = nn::initial_values(of_other, 1);
  CHECK(read[0] == static_cast<float>(std::log(5.0)));
  lockstep_test::TemporaryFolder const folder;
  auto const file = (folder.path() / "clip.safetensors").string();
  lockstep::train::save_parameters(file, layout, values);
  static_cast<void>(lockstep::train::load_parameters(file, of_other, read));
  CHECK(read[0] == values[0]);
}

TEST_CASE("the factor stays at its maximum, and can decrease again") {
  nn::LogitScale layer{{.start = 2, .max = 4}};
  auto const layout = nn::ParameterLayout::of(layer);
  std::vector<double> values(static_cast<std::size_t>(layout.size())), gradients(values.size());
  lockstep::ThreadPool pool(1);
  nn::Context<double, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
  auto const step = [&](double s, double dy) {
    values[0] = s;
    std::vector<double> x{3};
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    auto const y = layer.forward(context, context.input(lockstep::TensorView<double, 2, HostSpace>{x.data(), {1, 1}}));
    context.gradient(y).data[0] = dy;
    double const factor = y.value(0, 0) / 3;
    nn::Pass(context).backward({});
    return std::pair{factor, gradients[0]};
  };
  CHECK(step(0, 1) == std::pair{1.0, 3.0});
  CHECK(step(0, -1) == std::pair{1.0, -3.0});
  CHECK(step(2, 1) == std::pair{4.0, 12.0});
  CHECK(step(2, -1) == std::pair{4.0, 0.0});
}

TEST_CASE("an invalid initial value is refused") {
  CHECK_THROWS_WITH_AS(
      nn::LogitScale({.start = 200}),
      "LogitScale: the factor starts at 200 and its max is 100; it must start above 0 and not above its "
      "max",
      lockstep::ConfigError);
  CHECK_THROWS_AS(nn::LogitScale({.start = 0}), lockstep::ConfigError);
}
