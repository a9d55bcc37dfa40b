// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/detail/apply_to_rows.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>

#include "nn/space_check.hpp"

using namespace space_check;

namespace {

auto const on_pictures = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const activated = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, x, nn::Activation::gelu);
};
auto const on_rows = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, x.as_rows());
};

template <class Layer, std::size_t Rank>
void check(Layer const& layer, std::array<Index, Rank> extent, auto const& on_image, auto const& on_row) {
  auto const result = trial<double>(layer, extent, on_image).check();
  CAPTURE(result.where);
  CHECK(result.ok());
  auto image = trial<float>(layer, extent, on_image);
  auto rows = trial<float>(layer, extent, on_row);
  CHECK(image.run(1) == rows.run(1));
  CHECK(same_bits(image.gradients, rows.gradients));
}

}  // namespace

TEST_CASE("the places of an image, a video or a time series are rows for Linear and norms") {
  check(nn::LayerNorm(6), Extents<4>{2, 3, 4, 6}, on_pictures, on_rows);
  check(nn::RMSNorm(6), Extents<5>{2, 1, 3, 2, 6}, on_pictures, on_rows);
  check(nn::Linear(6, 4), Extents<3>{2, 5, 6}, on_pictures, on_rows);
  check(nn::Linear(6, 4), Extents<4>{2, 3, 4, 6}, activated, [](auto& context, auto const& layer, auto const& x) {
    return layer.forward(context, x.as_rows(), nn::Activation::gelu);
  });
  check(nn::LayerNorm(6), Extents<4>{0, 3, 4, 6}, on_pictures, on_rows);
}

TEST_CASE("the result has the image's extents, and the channels of the layer") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Linear layer(3, 7);
  auto const layout = nn::ParameterLayout::of(layer);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  context.parameters().bind(values.data(), nullptr, layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  auto const y = layer.forward(context, context.variable<4>({2, 5, 4, 3}));
  CHECK(y.value.extent == Extents<4>{2, 5, 4, 7});
  CHECK_THROWS_WITH_AS(layer.forward(context, context.variable<4>({2, 5, 4, 2})), doctest::Contains("Linear"),
                       ShapeError);
}
