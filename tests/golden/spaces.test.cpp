// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/convolution/pad.hpp>
#include <lockstep/nn/convolution/transposed_convolution.hpp>
#include <lockstep/nn/convolution/upsample.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/group_norm.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>

#include "golden/golden.hpp"

using namespace lockstep;
using golden::data;

namespace {

/// The layer and its input, which is a parameter, so that its gradient can be compared too.
template <class Layer>
struct Model {
  Layer layer;
  nn::Parameter input;
  void visit(auto&& each) {
    each("input", input);
    layer.visit(each);
  }
};

template <class T, int Rank, class Layer>
void check(json::Value const& expected, double roundings, Layer layer) {
  auto const& values = expected.at("values");
  Model<Layer> model{std::move(layer), nn::Parameter{golden::shape(values.at("input")), {}}};
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == values.object().size());
  REQUIRE(layout.buffers().size() == expected.at("buffers").object().size());
  using Real = Accumulate<T>;
  std::vector<Real> arena(static_cast<std::size_t>(layout.size())), gradients(arena.size()),
      buffers(static_cast<std::size_t>(layout.buffer_size()));
  nn::initialize_buffers(layout, buffers.data());
  for (auto const& entry : layout.entries()) {
    REQUIRE(golden::shape(values.at(entry.name)) == entry.shape);
    auto const numbers = data<Real>(values.at(entry.name));
    std::copy(numbers.begin(), numbers.end(), arena.begin() + entry.offset);
  }
  ThreadPool pool(1);
  nn::Context<T, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(arena.data(), gradients.data(), layout.entries().size());
  context.parameters().bind_buffers(buffers.data());
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const from = context.template value<Rank>(model.input);
  auto const x = context.template variable<Rank>(from.extent);
  auto const rounded = [](Real v) { return static_cast<T>(v); };
  std::transform(from.data, from.data + from.size(), x.value.data, rounded);
  auto const y = std::as_const(model.layer).forward(context, x);
  std::vector<T> const output(y.value.data, y.value.data + y.value.size());
  auto const weights = data<Real>(expected.at("weights"));
  REQUIRE(golden::shape(expected.at("output")) == std::vector<Index>(y.value.extent.begin(), y.value.extent.end()));
  std::transform(weights.begin(), weights.end(), context.gradient(y).data, rounded);
  nn::Pass(context).backward({});

  double off = 0;
  for (auto const& entry : layout.buffers())
    off = std::max(
        off, golden::difference(buffers.data() + entry.offset, data<double>(expected.at("buffers").at(entry.name))));
  if constexpr (std::is_same_v<T, bfloat16>) {
    golden::MeanDifference outputs, all;
    outputs.add(output.data(), data<double>(expected.at("output")));
    for (auto const& entry : layout.entries()) {
      auto const exact = data<double>(expected.at("gradients").at(entry.name));
      if (entry.name == "input")
        all.add(x.slot->data, exact);
      else
        all.add(gradients.data() + entry.offset, exact);
    }
    CHECK(outputs.value() <= golden::of_pytorchs * expected.at("bfloat16").at("output").number());
    CHECK(all.value() <= golden::of_pytorchs * expected.at("bfloat16").at("gradients").number());
  } else {
    off = std::max(off, golden::difference(output.data(), data<double>(expected.at("output"))));
    for (auto const& entry : layout.entries()) {
      auto const* const got = entry.name == "input" ? x.slot->data : gradients.data() + entry.offset;
      off = std::max(off, golden::difference(got, data<double>(expected.at("gradients").at(entry.name))));
    }
  }
  CHECK(off <= roundings * std::max(1.0, golden::largest(expected)));
}

template <int Dims>
nn::Convolution<Dims> convolution() {
  return nn::Convolution<Dims>(2, 3, {.kernel = 3, .stride = 2, .padding = 1});
}

}  // namespace

// The bound counts the roundings of the longest sum, each of at most half a unit of the largest number of the case: two
// for each of the 2 * 27 terms of a three-dimensional convolution, and forward and backward of a mean and a variance
// over 12 places.
TEST_CASE_TEMPLATE("outputs, gradients and statistics of spatial layers equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("spaces");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    if (name == "convolution_1d") {
      check<T, 3>(expected, 2 * 2 * 3, convolution<1>());
    } else if (name == "convolution_2d") {
      check<T, 4>(expected, 2 * 2 * 9, convolution<2>());
    } else if (name == "convolution_3d") {
      check<T, 5>(expected, 2 * 2 * 27, convolution<3>());
    } else if (name == "batch_norm") {
      check<T, 4>(expected, 2 * 2 * 2 * 12, nn::BatchNorm(3));
    } else if (name == "largest_pool") {
      check<T, 4>(expected, 0, nn::SpacePooling<2, nn::Pool::max>({.kernel = 2, .stride = 2}));
    } else if (name == "average_pool") {
      check<T, 4>(expected, 4, nn::SpacePooling<2, nn::Pool::average>({.kernel = 2, .stride = 2}));
    } else {
      FAIL("unknown layer");
    }
  }
  CHECK(checked == 6);
}

// A sum of at most 8 numbers and a quotient, forward and backward.
TEST_CASE_TEMPLATE("pooling with ceil_mode, or without counting padding, and its gradients equal PyTorch's", T, double,
                   float, bfloat16) {
  auto const file = golden::load("pooling");
  int checked = 0;
  nn::SpacePoolingOptions<2> const options{
      .kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false};
  auto padded = options, floor = options;
  padded.count_include_pad = true;
  floor.ceil_mode = false;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    if (name == "max") {
      check<T, 4>(expected, 2, nn::MaxPool2d(options));
    } else if (name == "padded") {
      check<T, 4>(expected, 2 * 9, nn::AvgPool2d(padded));
    } else if (name == "elements") {
      check<T, 4>(expected, 2 * 9, nn::AvgPool2d(options));
    } else if (name == "elements_floor") {
      check<T, 4>(expected, 2 * 9, nn::AvgPool2d(floor));
    } else {
      check<T, 3>(expected, 2 * 9, nn::AvgPool1d({.kernel = 3, .stride = 2, .ceil_mode = true}));
    }
  }
  CHECK(checked == 5);
}

// A mean of at most 12 numbers, and a gradient of at most 8 windows, each a quotient.
TEST_CASE_TEMPLATE("adaptive pooling and its gradients equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("adaptive_pooling");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    if (name == "average_1d") check<T, 3>(expected, 2 * 12, nn::AdaptiveAvgPool1d(3));
    if (name == "average_2d") check<T, 4>(expected, 2 * 12, nn::AdaptiveAvgPool2d({7, 4}));
    if (name == "average_3d") check<T, 5>(expected, 2 * 24, nn::AdaptiveAvgPool3d({2, 1, 6}));
    if (name == "max_1d") check<T, 3>(expected, 8, nn::AdaptiveMaxPool1d(3));
    if (name == "max_2d") check<T, 4>(expected, 8, nn::AdaptiveMaxPool2d({7, 4}));
    if (name == "max_3d") check<T, 5>(expected, 8, nn::AdaptiveMaxPool3d({2, 1, 6}));
  }
  CHECK(checked == 6);
}

// The longest sum is a weight's gradient, over at most 40 places with a product each, or a bias's, over 60.
TEST_CASE_TEMPLATE("grouped, dilated, causal and transposed convolutions and their gradients equal PyTorch's", T,
                   double, float, bfloat16) {
  auto const file = golden::load("convolutions");
  int checked = 0;
  double const roundings = 2 * 40;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    if (name == "grouped") {
      check<T, 4>(
          expected, roundings,
          nn::Conv2d(4, 6, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 1}, .groups = 2}));
    } else if (name == "depthwise") {
      check<T, 4>(expected, roundings, nn::Conv2d(3, 3, {.padding = 1, .groups = 3}));
    } else if (name == "causal") {
      check<T, 3>(expected, roundings, nn::Conv1d(2, 3, {.dilation = 2, .causal = true}));
    } else if (name == "transposed_grouped") {
      check<T, 4>(expected, roundings,
                  nn::ConvTranspose2d(4, 6,
                                      {.kernel = {3, 2},
                                       .stride = {2, 1},
                                       .padding = {2, 1},
                                       .output_padding = {1, 0},
                                       .dilation = {2, 3},
                                       .groups = 2}));
    } else if (name == "transposed_depthwise") {
      check<T, 3>(expected, roundings, nn::ConvTranspose1d(3, 3, {.kernel = 3, .dilation = 2, .groups = 3}));
    } else {
      FAIL("unknown layer");
    }
  }
  CHECK(checked == 5);
}

// The longest sum is a weight's gradient, over all places of x.
TEST_CASE_TEMPLATE("transposed convolutions, upsampling and their gradients equal PyTorch's", T, double, float,
                   bfloat16) {
  auto const file = golden::load("upsampling");
  int checked = 0;
  auto const both = [&]<int Dims>(std::integral_constant<int, Dims>, auto const& expected, bool padded, double places) {
    using Layer = nn::TransposedConvolution<Dims>;
    check<T, Dims + 2>(
        expected, 2 * 2 * 2 * places,
        padded ? Layer(3, 2, {.kernel = 4, .stride = 3, .padding = 1, .output_padding = 2}) : Layer(2, 3));
  };
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    bool const padded = name.ends_with("padded");
    if (name.starts_with("transposed_convolution_1d")) {
      both(std::integral_constant<int, 1>{}, expected, padded, 10);
    } else if (name.starts_with("transposed_convolution_2d")) {
      both(std::integral_constant<int, 2>{}, expected, padded, 12);
    } else if (name.starts_with("transposed_convolution_3d")) {
      both(std::integral_constant<int, 3>{}, expected, padded, 12);
    } else {
      check<T, 4>(expected, 6, nn::Upsample2d({2, 3}));
    }
  }
  CHECK(checked == 7);
}

// A sum of at most 4 * 8 gradients, each times a product of weights.
TEST_CASE_TEMPLATE("linear, bilinear and trilinear upsampling and its gradients equal PyTorch's", T, double, float,
                   bfloat16) {
  auto const file = golden::load("linear_upsampling");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    auto const mode = nn::UpsampleMode::linear;
    if (name == "linear") {
      check<T, 3>(expected, 4 * 32, nn::Upsample1d(3, mode));
    } else if (name == "bilinear") {
      check<T, 4>(expected, 4 * 32, nn::Upsample2d({2, 3}, mode));
    } else {
      check<T, 5>(expected, 4 * 32, nn::Upsample3d({1, 2, 4}, mode));
    }
  }
  CHECK(checked == 3);
}

// A sum of at most nine gradients.
TEST_CASE_TEMPLATE("padding and its gradients equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("image_padding");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    auto const mode = name == "circular"  ? nn::PadMode::circular
                      : name == "reflect" ? nn::PadMode::reflect
                                          : nn::PadMode::replicate;
    check<T, 4>(expected, 9, nn::Pad2d({.padding = {2, 1}, .after = {0, 3}, .mode = mode}));
  }
  CHECK(checked == 3);
}

// Forward and backward of a mean and a variance over at most 24 numbers.
TEST_CASE_TEMPLATE("group normalization and its gradients equal PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("groups");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    auto const groups = name == "group_norm_1" ? 1 : name == "group_norm_2" ? 2 : 3;
    check<T, 4>(expected, 2 * 2 * 2 * 24, nn::GroupNorm(groups, golden::shape(expected.at("values").at("weight"))[0]));
  }
  CHECK(checked == 3);
}
