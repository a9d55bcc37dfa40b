// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/transposed_convolution.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/convolution/concatenate_channels.hpp>
#include <lockstep/nn/convolution/convolution.hpp>

#include "space_mallocs.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {  // gradients are written, then added
  return nn::concatenate_channels(context, layer.forward(context, x), layer.forward(context, x));
};
struct Both {
  nn::Conv1d& down;
  nn::ConvTranspose1d& up;
  void visit(auto&& each) { each("down", down), each("up", up); }
};
}  // namespace

TEST_CASE("gradients of transposed convolutions in one, two and three dimensions") {
  auto const ok = [](nn::GradientCheckResult const& result) {
    CAPTURE(result.where);
    CHECK(result.ok());
  };
  ok(trial<double>(nn::ConvTranspose1d(3, 2), Extents<3>{4, 5, 3}, twice).check());
  ok(trial<double>(nn::ConvTranspose1d(1, 1, {.kernel = 1, .stride = 1}), Extents<3>{1, 1, 1}, alone).check());
  ok(trial<double>(nn::ConvTranspose1d(2, 3, {.kernel = 2, .stride = 4, .output_padding = 3}), Extents<3>{17, 3, 2},
                   alone)
         .check());
  ok(trial<double>(nn::ConvTranspose2d(3, 2, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}}),
                   Extents<4>{2, 3, 4, 3}, alone)
         .check());
  ok(trial<double>(nn::ConvTranspose3d(2, 2, {.kernel = 2, .stride = {1, 2, 2}, .bias = nn::Bias::none}),
                   Extents<5>{2, 2, 2, 3, 2}, alone)
         .check());
  ok(trial<double>(nn::ConvTranspose2d(4, 6, {.kernel = {2, 3}, .padding = {1, 0}, .dilation = {3, 1}, .groups = 2}),
                   Extents<4>{2, 3, 2, 4}, twice)
         .check());
  ok(trial<double>(nn::ConvTranspose1d(5, 5, {.kernel = 3, .stride = 1, .dilation = 2, .groups = 5}),
                   Extents<3>{3, 4, 5}, alone)
         .check());
}

TEST_CASE_TEMPLATE("bits do not depend on threads", T, float, double) {
  auto one = trial<T>(nn::ConvTranspose2d(5, 8), Extents<4>{19, 6, 7, 5}, alone);
  double const loss = one.run(1);
  for (int threads : {2, 4}) {
    auto other = trial<T>(nn::ConvTranspose2d(5, 8), Extents<4>{19, 6, 7, 5}, alone);
    CHECK(other.run(threads) == loss);
    CHECK(same_bits(other.gradients, one.gradients));
  }
}

TEST_CASE("it restores the extent of a convolution's input, and has PyTorch's initial values") {
  ThreadPool pool(1);
  for (Index length : {7, 8, 9}) {
    nn::Conv1d down(2, 3, {.kernel = 3, .stride = 3, .padding = 1});
    nn::ConvTranspose1d up(3, 2, {.kernel = 3, .stride = 3, .padding = 1, .output_padding = (length - 1) % 3});
    Both both{down, up};
    auto const layout = nn::ParameterLayout::of(both);
    CHECK(layout.entries()[2].shape == std::vector<Index>{3, 2, 3});  // [inputs, outputs, kernel]
    CHECK(layout.entries()[2].initializer.scale == doctest::Approx(1 / std::sqrt(6.0)));
    CHECK(layout.entries()[3].initializer.scale == doctest::Approx(1 / std::sqrt(6.0)));
    std::vector<float> const values(static_cast<std::size_t>(layout.size())),
        x(static_cast<std::size_t>(2 * length * 2));
    nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
    context.parameters().bind(values.data(), nullptr, layout.entries().size());
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
    auto const given = context.input(TensorView<float const, 3, HostSpace>(x.data(), {2, length, 2}));
    CHECK(up.forward(context, down.forward(context, given)).value.extent == Extents<3>{2, length, 2});
  }
}

TEST_CASE("groups divide the weight and its initial values' bound") {
  nn::ConvTranspose2d grouped(8, 4, {.kernel = 3, .groups = 2});
  CHECK(grouped.inputs() == 8);
  CHECK(grouped.outputs() == 4);
  auto const layout = nn::ParameterLayout::of(grouped);
  CHECK(layout.entries()[0].shape == std::vector<Index>{8, 2, 3, 3});
  for (auto const& entry : layout.entries()) CHECK(entry.initializer.scale == doctest::Approx(1 / std::sqrt(18.0)));
}

TEST_CASE("no samples") {
  auto none = trial<float>(nn::ConvTranspose2d(2, 3), Extents<4>{0, 5, 5, 2}, alone);
  none.gradients.assign(none.gradients.size(), 7.0f);
  CHECK(none.run(2) == 0);
  for (std::size_t i = 0; i < none.gradients.size(); ++i)
    if (none.layout.entries()[1].offset <= static_cast<Index>(i) &&
        static_cast<Index>(i) < none.layout.entries()[1].offset + none.layout.entries()[1].size)
      CHECK(none.gradients[i] == 0);
}

TEST_CASE("a step does not allocate after its shapes were seen once" * doctest::skip(!lockstep_test::counts_mallocs)) {
  auto t = trial<float>(nn::ConvTranspose2d(4, 3), Extents<4>{5, 6, 5, 4}, twice);
  CHECK(mallocs_of_later_steps(t, 2) == 0);
}

TEST_CASE("invalid shapes are refused") {
  CHECK_THROWS_WITH_AS(nn::ConvTranspose2d(0, 3), doctest::Contains("TransposedConvolution: 0 inputs, 3 outputs"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(nn::ConvTranspose1d(1, 1, {.output_padding = 2}),
                       "TransposedConvolution: output padding [2] and stride [2]; the output padding must be from 0 to "
                       "below the stride",
                       ConfigError);
  CHECK_THROWS_WITH_AS(nn::ConvTranspose1d(1, 1, {.dilation = 0}),
                       "TransposedConvolution: dilation [0], 1 groups; both must be at least 1", ConfigError);
  CHECK_THROWS_WITH_AS(nn::ConvTranspose1d(12, 18, {.groups = 4}),
                       "TransposedConvolution: 12 inputs and 18 outputs in 4 groups, which must divide both; the "
                       "nearest that do are 3 and 6",
                       ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::ConvTranspose1d(3, 1), Extents<3>{1, 5, 2}, alone).run(1),
                       "TransposedConvolution layer: the input is [1, 5, 2] and the layer has 3 input channels; the "
                       "last extent must be 3",
                       ShapeError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::ConvTranspose1d(2, 1, {.padding = 1}), Extents<3>{1, 1, 2}, alone).run(1),
                       doctest::Contains("leaves an empty output"), ShapeError);
  CHECK_THROWS_AS(trial<float>(nn::ConvTranspose1d(2, 1), Extents<3>{1, 0, 2}, alone).run(1), ShapeError);
}
