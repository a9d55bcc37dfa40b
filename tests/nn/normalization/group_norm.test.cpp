// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/group_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

#include <lockstep/nn/autograd/recompute.hpp>

#include "nn/space_check.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, layer.forward(context, x));
};
nn::GroupNorm rectified(Index groups, Index channels) {
  return nn::GroupNorm(groups, channels, {.activation = nn::Activation::relu});
}
}  // namespace

TEST_CASE("gradients, with and without the rectifier") {
  for (auto const& [groups, channels] : {std::array<Index, 2>{1, 1}, {1, 3}, {3, 3}, {2, 8}, {17, 34}}) {
    for (auto const& layer : {nn::GroupNorm(groups, channels), rectified(groups, channels)}) {
      auto const series = trial<double>(layer, Extents<3>{3, 5, channels}, alone).check();
      CAPTURE(series.where);
      CHECK(series.ok());
      auto const clip = trial<double>(layer, Extents<5>{2, 3, 2, 2, channels}, alone).check();
      CAPTURE(clip.where);
      CHECK(clip.ok());
    }
  }
  auto const shared = trial<double>(nn::GroupNorm(3, 6), Extents<3>{2, 4, 6}, twice).check();
  CAPTURE(shared.where);
  CHECK(shared.ok());
  auto const vectors = trial<double>(nn::GroupNorm(2, 6), Extents<2>{5, 6}, alone).check();
  CAPTURE(vectors.where);
  CHECK(vectors.ok());
}

TEST_CASE_TEMPLATE("groups of each sample have mean 0 and variance 1, also far from zero and in many chunks", T, float,
                   double) {
  Extents<3> const extent{2, 3000, 6};
  auto t = trial<T>(nn::GroupNorm(2, 6, {.epsilon = 1e-12}), extent, alone);
  for (std::size_t i = 0; i < t.values.size(); ++i)
    if (i < 2 * 3000 * 6) t.values[i] = static_cast<T>(1000) + t.values[i];
  for (Index c = 0; c < 6; ++c) {
    t.values[static_cast<std::size_t>(t.layout.entries()[1].offset + c)] = T{1};
    t.values[static_cast<std::size_t>(t.layout.entries()[2].offset + c)] = T{0};
  }
  ThreadPool pool(2);
  nn::Context<T, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(t.values.data(), t.gradients.data(), t.layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  nn::GroupNorm layer(2, 6, {.epsilon = 1e-12});
  auto const bound = nn::ParameterLayout::of(layer);
  context.parameters().bind(t.values.data() + t.layout.entries()[1].offset - bound.entries()[0].offset,
                            t.gradients.data(), bound.entries().size());
  auto const y = layer.forward(
      context, context.input(TensorView<T, 3, HostSpace>{t.values.data() + t.layout.entries()[0].offset, extent}));
  for (Index row = 0; row < 2; ++row)
    for (Index group = 0; group < 2; ++group) {
      double sum = 0, squares = 0;
      for (Index p = 0; p < 3000; ++p)
        for (Index c = 3 * group; c < 3 * group + 3; ++c) {
          auto const value = static_cast<double>(y.value(row, p, c));
          sum += value, squares += value * value;
        }
      CHECK(std::abs(sum / 9000) <= (sizeof(T) == 4 ? 2e-4 : 1e-9));
      CHECK(squares / 9000 == doctest::Approx(1).epsilon(sizeof(T) == 4 ? 1e-3 : 1e-9));
    }
}

TEST_CASE_TEMPLATE("bits do not depend on threads, on other samples, or on recomputation", T, float, double) {
  for (auto const& layer : {nn::GroupNorm(4, 20), rectified(4, 20)}) {
    auto const outcome = [&](int threads, auto apply) {
      auto t = trial<T>(layer, Extents<3>{3, 1700, 20}, apply);
      auto const loss = t.run(threads);
      return std::pair{loss, t.gradients};
    };
    auto const expected = outcome(1, alone);
    for (int const threads : {2, 4}) CHECK(outcome(threads, alone) == expected);
    auto const again = [](auto& context, auto const& one, auto const& x) {
      return context.recompute([&one, x](auto& c) { return one.forward(c, x); }, x);
    };
    CHECK(outcome(1, again) == expected);
  }
}

TEST_CASE("an empty batch or empty images give gradients of zero") {
  for (auto const& extent : {Extents<3>{0, 4, 6}, Extents<3>{2, 0, 6}}) {
    auto t = trial<float>(rectified(2, 6), extent, alone);
    t.gradients.assign(t.gradients.size(), 7.0f);
    CHECK(t.run(2) == 0);
    for (std::size_t p : {1u, 2u})
      for (Index c = 0; c < 6; ++c) CHECK(t.gradients[static_cast<std::size_t>(t.layout.entries()[p].offset + c)] == 0);
  }
}

TEST_CASE("invalid inputs are refused") {
  CHECK_THROWS_WITH_AS(nn::GroupNorm(0, 4),
                       "GroupNorm: 0 groups, 4 channels and epsilon 1e-05; groups and channels must be at least 1, "
                       "epsilon above 0",
                       ConfigError);
  CHECK_THROWS_WITH_AS(nn::GroupNorm(3, 4),
                       "GroupNorm: 3 groups do not divide 4 channels; groups must be of equal size", ShapeError);
  CHECK_THROWS_AS(nn::GroupNorm(2, 4, {.activation = nn::Activation::gelu}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::GroupNorm(2, 4, {.activation = nn::Activation::silu}),
                       "GroupNorm: activation silu; only none and relu are fused with it: apply nn::silu after it",
                       ConfigError);
  auto t = trial<float>(nn::GroupNorm(2, 6), Extents<3>{2, 3, 5}, alone);
  CHECK_THROWS_WITH_AS(
      t.run(1), "GroupNorm layer: the input is [2, 3, 5] and the layer has 6 channels; the last extent must be 6",
      ShapeError);
}
