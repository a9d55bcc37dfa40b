// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/pad.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/convolution/concatenate_channels.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/module/sequential.hpp>

#include "nn/space_check.hpp"

using namespace space_check;
using nn::PadMode;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {  // dx is written, then added
  return nn::concatenate_channels(context, layer.forward(context, x), layer.forward(context, x));
};
}  // namespace

TEST_CASE("gradients of padding in one, two and three dimensions") {
  auto const ok = [](nn::GradientCheckResult const& result) {
    CAPTURE(result.where);
    CHECK(result.ok());
  };
  ok(trial<double>(nn::Pad1d(), Extents<3>{3, 4, 5}, twice).check());
  ok(trial<double>(nn::Pad2d({.padding = {2, 1}, .after = {0, 1}, .mode = PadMode::reflect}), Extents<4>{2, 3, 2, 3},
                   alone)
         .check());
  ok(trial<double>(nn::Pad3d({.padding = {0, 3, 1}, .mode = PadMode::replicate}), Extents<5>{1, 2, 2, 3, 2}, alone)
         .check());
}

TEST_CASE("zeros before x only, as ZeroPad2d") {
  nn::Pad2d const layer({.padding = {2, 1}, .after = 0, .mode = PadMode::zero});
  auto const padded = [](auto& c, auto const& l, auto const& x) {
    auto const y = l.forward(c, x);
    REQUIRE(y.value.extent == Extents<4>{2, 5, 5, 3});
    for (Index h = 0; h < 5; ++h)
      for (Index w = 0; w < 5; ++w) CHECK(y.value(1, h, w, 2) == (h < 2 || w < 1 ? 0 : x.value(1, h - 2, w - 1, 2)));
    return y;
  };
  static_cast<void>(trial<float>(layer, Extents<4>{2, 3, 4, 3}, padded).run(1));
  CHECK(trial<double>(layer, Extents<4>{2, 3, 4, 3}, twice).check().ok());
}

TEST_CASE("a convolution after circular padding commutes with shifts along periodic axes") {
  constexpr Index height = 4, width = 5, channels = 2;
  nn::Sequential const layer{nn::Pad2d{}, nn::Conv2d{channels, 3}};
  auto rolled = trial<double>(layer, Extents<4>{1, height, width, channels}, [](auto& c, auto const& l, auto const& x) {
    auto const shifted = c.template variable<4>(x.value.extent);
    for (Index h = 0; h < height; ++h)
      for (Index w = 0; w < width; ++w)
        for (Index k = 0; k < channels; ++k)
          shifted.value(0, (h + 1) % height, (w + 2) % width, k) = x.value(0, h, w, k);
    auto const y = l.forward(c, x), moved = l.forward(c, shifted);
    REQUIRE(y.value.extent == Extents<4>{1, height, width, 3});
    for (Index h = 0; h < height; ++h)
      for (Index w = 0; w < width; ++w)
        for (Index k = 0; k < 3; ++k)
          CHECK(moved.value(0, (h + 1) % height, (w + 2) % width, k) == doctest::Approx(y.value(0, h, w, k)));
    return y;
  });
  static_cast<void>(rolled.run(1, 1, nn::Mode::evaluation));
}

TEST_CASE("invalid padding is refused") {
  CHECK_THROWS_WITH_AS(nn::Pad2d({.padding = {1, -1}, .after = 0}),
                       "Pad: padding [1, -1] before and [0, 0] after; every one must be at least 0", ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::Pad1d({.padding = 4}), Extents<3>{1, 3, 2}, alone).run(1),
                       doctest::Contains("circular padding must be at most the extent of its axis"), ShapeError);
}
