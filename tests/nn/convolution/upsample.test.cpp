// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/upsample.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/convolution/concatenate_channels.hpp>

#include "nn/space_check.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {  // dx is written, then added
  return nn::concatenate_channels(context, layer.forward(context, x), layer.forward(context, x));
};
}  // namespace

TEST_CASE("gradients of upsampling in one, two and three dimensions") {
  auto const ok = [](nn::GradientCheckResult const& result) {
    CAPTURE(result.where);
    CHECK(result.ok());
  };
  ok(trial<double>(nn::Upsample1d(), Extents<3>{3, 4, 5}, alone).check());
  ok(trial<double>(nn::Upsample2d({2, 3}), Extents<4>{2, 3, 2, 3}, twice).check());
  ok(trial<double>(nn::Upsample3d({1, 2, 2}), Extents<5>{1, 2, 3, 2, 2}, alone).check());
  ok(trial<double>(nn::Upsample1d(3, nn::UpsampleMode::linear), Extents<3>{3, 4, 5}, alone).check());
  ok(trial<double>(nn::Upsample2d({2, 3}, nn::UpsampleMode::linear), Extents<4>{2, 3, 2, 3}, twice).check());
  ok(trial<double>(nn::Upsample3d({1, 2, 2}, nn::UpsampleMode::linear), Extents<5>{1, 2, 3, 2, 2}, alone).check());
  auto const aligned = nn::UpsampleMode::linear_aligned;
  ok(trial<double>(nn::Upsample1d(3, aligned), Extents<3>{3, 4, 5}, alone).check());
  ok(trial<double>(nn::Upsample2d({2, 3}, aligned), Extents<4>{2, 3, 2, 3}, twice).check());
  ok(trial<double>(nn::Upsample3d({1, 2, 2}, aligned), Extents<5>{1, 2, 3, 2, 2}, alone).check());
}

TEST_CASE("factors below 1 are refused") {
  CHECK_THROWS_WITH_AS(nn::Upsample2d({2, 0}), "Upsample: factor [2, 0]; every one must be at least 1", ConfigError);
}
