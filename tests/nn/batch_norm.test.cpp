// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/batch_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <lockstep/nn/recompute.hpp>

#include "nn/space_check.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {  // parameters and running averages used twice
  return layer.forward(context, layer.forward(context, x));
};
nn::BatchNorm rectified(Index channels) { return nn::BatchNorm(channels, {.activation = nn::Activation::relu}); }
float buffer(auto const& t, std::size_t which, Index c) {
  return static_cast<float>(t.buffers[static_cast<std::size_t>(t.layout.buffers()[which].offset + c)]);
}
}  // namespace

TEST_CASE("gradients in training mode, with and without the rectifier") {
  for (Index channels : {1, 3, 8, 17}) {
    for (auto const& layer : {nn::BatchNorm(channels), rectified(channels)}) {
      CAPTURE(channels);
      auto const matrix = trial<double>(layer, Extents<2>{31, channels}, alone).check();
      CAPTURE(matrix.where);
      CHECK(matrix.ok());
      auto const clip = trial<double>(layer, Extents<5>{2, 3, 2, 2, channels}, alone).check();
      CAPTURE(clip.where);
      CHECK(clip.ok());
    }
  }
  auto const shared = trial<double>(nn::BatchNorm(3), Extents<2>{7, 3}, twice).check();
  CAPTURE(shared.where);
  CHECK(shared.ok());
}

TEST_CASE("one value per channel is normalised to zero and leaves the running statistics alone") {
  auto t = trial<double>(nn::BatchNorm(3), Extents<2>{1, 3}, alone);
  auto const before = t.buffers;
  auto const result = t.check();
  CAPTURE(result.where);
  CHECK(result.ok());
  t.run(1);
  CHECK(t.buffers == before);
}

TEST_CASE("no samples give gradients of zero and leave the running statistics alone") {
  auto t = trial<float>(rectified(5), Extents<3>{0, 4, 5}, alone);
  auto const before = t.buffers;
  t.gradients.assign(t.gradients.size(), 7.0f);
  CHECK(t.run(2) == 0);
  for (std::size_t p : {1u, 2u})
    for (Index c = 0; c < 5; ++c) CHECK(t.gradients[static_cast<std::size_t>(t.layout.entries()[p].offset + c)] == 0);
  CHECK(t.buffers == before);
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  auto const make = [] { return trial<T>(rectified(20), Extents<3>{60, 50, 20}, alone); };
  auto one = make();
  double const loss = one.run(1);
  for (int threads : {1, 2, 4}) {
    auto other = make();
    CHECK(other.run(threads) == loss);
    CHECK(same_bits(other.gradients, one.gradients));
    CHECK(same_bits(other.buffers, one.buffers));
  }
}

TEST_CASE("the running statistics follow PyTorch: momentum 0.1, variance over n - 1") {
  auto t = trial<float>(nn::BatchNorm(1), Extents<2>{4, 1}, alone);
  for (std::size_t i = 0; i < 4; ++i)
    t.values[static_cast<std::size_t>(t.layout.entries()[0].offset) + i] = std::array{1.f, 2.f, 3.f, 6.f}[i];
  t.run(1);
  // BatchNorm1d(1) after one batch of 1, 2, 3, 6: 0.1 * 3 and 0.9 + 0.1 * 14 / 3
  CHECK(buffer(t, 0, 0) == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(buffer(t, 1, 0) == doctest::Approx(0.9 + 1.4 / 3).epsilon(1e-6));
  t.run(1, 1, nn::Mode::evaluation);
  CHECK(buffer(t, 0, 0) == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(t.layout.buffers()[0].name == "layer.running_mean");
  CHECK(t.layout.buffers()[1].name == "layer.running_var");
}

TEST_CASE(
    "momentum is the new share of the running statistics, from none to all; weights start at one, biases at zero") {
  for (double momentum : {0.0, 0.25, 1.0}) {
    auto t = trial<double>(nn::BatchNorm(1, {.momentum = momentum}), Extents<2>{4, 1}, alone);
    for (std::size_t i = 0; i < 4; ++i)
      t.values[static_cast<std::size_t>(t.layout.entries()[0].offset) + i] = std::array{1., 2., 3., 6.}[i];
    t.run(1);
    CHECK(buffer(t, 0, 0) == static_cast<float>(momentum * 3));
    CHECK(t.layout.entries()[1].initializer.scale == 1);
    CHECK(t.layout.entries()[2].initializer.scale == 0);
  }
}

TEST_CASE("rows that are recomputed count once in the running statistics") {
  auto once = trial<float>(nn::BatchNorm(3), Extents<2>{7, 3}, alone);
  auto again = trial<float>(nn::Recompute{nn::BatchNorm(3)}, Extents<2>{7, 3}, alone);
  CHECK(once.run(1) == again.run(1));
  CHECK(once.gradients == again.gradients);
  CHECK(once.buffers == again.buffers);
}

TEST_CASE("evaluation uses the running statistics, whatever the batch") {
  auto t = trial<double>(nn::BatchNorm(2), Extents<2>{1, 2}, alone);
  std::vector<double> const mean{0.5, -2}, variance{4, 0.25};
  double expected = 0;
  for (Index c = 0; c < 2; ++c) {
    auto const at = static_cast<std::size_t>(c);
    t.buffers[static_cast<std::size_t>(t.layout.buffers()[0].offset + c)] = mean[at];
    t.buffers[static_cast<std::size_t>(t.layout.buffers()[1].offset + c)] = variance[at];
    auto const value = [&](std::size_t p) {
      return t.values[static_cast<std::size_t>(t.layout.entries()[p].offset + c)];
    };
    expected += number(99, c) * (value(1) * (value(0) - mean[at]) / std::sqrt(variance[at] + 1e-5) + value(2));
  }
  CHECK(t.run(1, 1, nn::Mode::evaluation) == doctest::Approx(expected).epsilon(1e-14));
}

TEST_CASE("a mean far above the deviation costs no digits: 1e4 with deviation 1 over many chunks") {
  nn::BatchNorm layer(1);
  auto t = trial<float>(layer, Extents<2>{100'000, 1}, alone);
  auto const input = static_cast<std::size_t>(t.layout.entries()[0].offset);
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {
    t.values[input + i] = 1e4f + static_cast<float>(number(1, static_cast<Index>(i)));
    mean += static_cast<double>(t.values[input + i]) / 1e5;
  }
  for (std::size_t i = 0; i < 100'000; ++i) squares += std::pow(static_cast<double>(t.values[input + i]) - mean, 2);
  t.run(2);
  // A chunk's mean is off by at most its 16384 float additions, 16384 * 2^-24 * 1e4 = 10 in the worst case and about
  // sqrt(16384) of them, 0.08, in practice; its variance by the square of that, which merging takes out again except
  // for rounding: 1 % of a variance of 1/3 bounds it, where the textbook formula would lose all of it.
  CHECK(buffer(t, 1, 0) == doctest::Approx(0.9 + 0.1 * squares / 99'999).epsilon(0.001));
}

TEST_CASE("what is of the batch gets no gradient, and the parameters get theirs") {
  auto const of_batch = [](auto& context, auto const& layer, auto x) {
    x.slot = nullptr;
    return layer.forward(context, x);
  };
  auto learned = trial<double>(rectified(3), Extents<2>{7, 3}, alone);
  auto given = trial<double>(rectified(3), Extents<2>{7, 3}, of_batch);
  CHECK(learned.run(1) == given.run(1));
  for (std::size_t p : {1u, 2u})
    for (Index c = 0; c < 3; ++c) {
      auto const at = static_cast<std::size_t>(learned.layout.entries()[p].offset + c);
      CHECK(learned.gradients[at] == given.gradients[at]);
    }
}

TEST_CASE("a nan is not rectified away") {
  auto t = trial<float>(rectified(1), Extents<2>{3, 1}, alone);
  t.values[static_cast<std::size_t>(t.layout.entries()[0].offset)] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(t.run(1)));
}

TEST_CASE("sizes that cannot be are refused") {
  CHECK_THROWS_AS(nn::BatchNorm(0), ConfigError);
  CHECK_THROWS_AS(nn::BatchNorm(1, {.epsilon = 0}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::BatchNorm(1, {.momentum = 1.5}), doctest::Contains("momentum in [0, 1]"), ConfigError);
  CHECK_THROWS_WITH_AS(nn::BatchNorm(1, {.activation = nn::Activation::gelu}), doctest::Contains("activation gelu"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::BatchNorm(3), Extents<2>{4, 2}, alone).run(1),
                       "BatchNorm layer: the input is [4, 2] and the layer has 3 channels; the last extent must be 3",
                       ShapeError);
}
