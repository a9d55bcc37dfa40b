// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/indexing/permute.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;
using namespace lockstep;

namespace {

/// Mixes tokens, then channels, and uses the transposed tokens twice.
struct Mixer {
  nn::Linear tokens{9, 9}, channels{5, 5};
  void visit(auto&& each) { each("tokens", tokens), each("channels", channels); }
};
auto const mixed = [](auto& context, Mixer const& layer, auto const& x) {
  auto const rows = x.tokens.extent(0) / 9;
  auto const by_token = x.tokens.reshape(Extents<3>{rows, 9, 5});
  auto const across = nn::permute(context, by_token, {0, 2, 1});
  auto const y = nn::add(context, across, layer.tokens.forward(context, across));
  return layer.channels.forward(context, nn::permute(context, y, {0, 2, 1}).reshape(Extents<2>{rows * 9, 5}));
};

}  // namespace

TEST_CASE("gradients through permuted axes") {
  auto const result = check(Mixer{}, 5, {.rows = 4, .length = 9}, mixed);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("pixels become channels and channels pixels, in float and 16 bits", T, float, bfloat16) {
  ThreadPool pool(2);
  nn::Context<T, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  Index const rows = 2, height = 3, width = 4, channels = 5, factor = 2;
  auto const x = context.template variable<4>({rows, height, width, channels * factor * factor});
  for (Index i = 0; i < x.value.size(); ++i) x.value.data[i] = static_cast<T>(static_cast<float>(i % 251));
  // PyTorch's PixelShuffle: channel c of pixel (h * factor + i, w * factor + j) is channel (c * factor + i) * factor +
  // j.
  auto const parts = x.reshape(Extents<6>{rows, height, width, channels, factor, factor});
  auto const y = nn::permute(context, parts, {0, 1, 4, 2, 5, 3})
                     .reshape(Extents<4>{rows, height * factor, width * factor, channels});
  Index wrong = 0;
  for (Index r = 0; r < rows; ++r)
    for (Index h = 0; h < height * factor; ++h)
      for (Index w = 0; w < width * factor; ++w)
        for (Index c = 0; c < channels; ++c)
          wrong +=
              static_cast<float>(y.value(r, h, w, c)) !=
              static_cast<float>(x.value(r, h / factor, w / factor, (c * factor + h % factor) * factor + w % factor));
  CHECK(wrong == 0);
}

TEST_CASE("axes that do not name each axis once are refused") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<3>({2, 3, 4});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::permute(context, x, {0, 2, 2})),
                       "permute: axes {0, 2, 2} of [2, 3, 4] do not name axis 1; name each of the 3 axes once, from 0",
                       ConfigError);
  CHECK_THROWS_AS(static_cast<void>(nn::permute(context, x, {1, 2, 3})), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(nn::permute(context, x, {0, -1, 2})), ConfigError);
}
