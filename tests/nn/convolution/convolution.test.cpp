// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/convolution.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/convolution/transposed_convolution.hpp>
#include <lockstep/nn/convolution/upsample.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>

#include "kernel/values.hpp"
#include "space_mallocs.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };

struct Block {  // a residual block: its input is used twice
  nn::Conv2d first{4, 4, {.kernel = 3, .padding = 1, .bias = nn::Bias::none}}, second{4, 2, {.kernel = 1}};
  void visit(auto&& each) { each("first", first), each("second", second); }
};
auto const twice = [](auto& context, Block const& block, auto const& x) {
  return block.second.forward(context, block.first.forward(context, block.first.forward(context, x)));
};
struct Stages1 {
  nn::Conv1d first{2, 8, {.kernel = 5, .stride = 2, .padding = 1}};
  nn::BatchNorm norm{8};
  nn::ConvTranspose1d up{8, 4, {.kernel = 3, .stride = 2, .padding = 1}};
  void visit(auto&& each) { each("first", first), each("norm", norm), each("up", up); }
};
struct Stages {
  nn::Conv2d first{2, 8, {.padding = 1}}, second{8, 4};
  nn::BatchNorm norm{8, {.activation = nn::Activation::relu}};
  nn::MaxPool2d pool;
  void visit(auto&& each) { each("first", first), each("norm", norm), each("second", second); }
};
}  // namespace

TEST_CASE("gradients in one, two and three dimensions") {
  auto const ok = [](nn::GradientCheckResult const& result) {
    CAPTURE(result.where);
    CHECK(result.ok());
  };
  ok(trial<double>(nn::Conv1d(3, 5, {.kernel = 3}), Extents<3>{4, 9, 3}, alone).check());
  ok(trial<double>(nn::Conv1d(1, 1, {.kernel = 1}), Extents<3>{1, 1, 1}, alone).check());
  ok(trial<double>(nn::Conv1d(2, 3, {.kernel = 4, .stride = 3, .padding = 2}), Extents<3>{17, 8, 2}, alone).check());
  ok(trial<double>(nn::Conv2d(3, 4, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}}), Extents<4>{2, 5, 6, 3},
                   alone)
         .check());
  ok(trial<double>(nn::Conv3d(2, 3, {.kernel = 3, .stride = {1, 2, 2}, .padding = 1}), Extents<5>{2, 3, 5, 4, 2}, alone)
         .check());
  ok(trial<double>(Block{}, Extents<4>{2, 4, 3, 4}, twice).check());
}

TEST_CASE("gradients of grouped, depthwise, dilated and causal convolutions") {
  auto const ok = [](nn::GradientCheckResult const& result) {
    CAPTURE(result.where);
    CHECK(result.ok());
  };
  ok(trial<double>(nn::Conv2d(4, 6, {.stride = {2, 1}, .padding = 1, .groups = 2}), Extents<4>{2, 5, 4, 4}, alone)
         .check());
  ok(trial<double>(nn::Conv2d(5, 5, {.stride = {1, 2}, .padding = 1, .groups = 5}), Extents<4>{2, 5, 7, 5}, alone)
         .check());
  ok(trial<double>(nn::Conv3d(2, 3, {.kernel = {1, 2, 3}, .padding = 2, .dilation = {1, 3, 2}}),
                   Extents<5>{2, 2, 4, 5, 2}, alone)
         .check());
  ok(trial<double>(nn::Conv1d(3, 2, {.stride = 2, .dilation = 3, .causal = true}), Extents<3>{3, 9, 3}, alone).check());
  ok(trial<double>(nn::Conv1d(4, 4, {.kernel = 2, .dilation = 4, .groups = 4, .causal = true}), Extents<3>{2, 7, 4},
                   alone)
         .check());
}

namespace {
/// Returns a layer's output for x, with weights that depend only on their number.
template <class Layer>
[[nodiscard]] std::vector<double> of(Layer layer, std::vector<double> const& x, Extents<3> extent,
                                     std::vector<std::int32_t> const& lengths = {}) {
  auto const layout = nn::ParameterLayout::of(layer);
  auto const values = lockstep_test::values<double>(layout.size(), 9);
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), nullptr, layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  auto const in = context.input(TensorView<double const, 3, HostSpace>(x.data(), extent));
  auto const numbers = [](auto const& y) { return std::vector<double>(y.data, y.data + y.size()); };
  if (lengths.empty()) return numbers(std::as_const(layer).forward(context, in).value);
  std::vector<Index> const positions(lengths.size());
  nn::Sequence<double, HostSpace> const sequences{
      in.as_rows(),
      nn::SequenceLayout<HostSpace>::padded(extent[1], {lengths.data(), {extent[0]}}, {positions.data(), {extent[0]}})};
  auto const y = std::as_const(layer).forward(context, sequences);
  auto made = numbers(y.tokens.value);
  auto const width = y.width();
  for (Index slot = 0; slot < y.layout.slots; ++slot)  // values in padding are ignored
    if (!y.layout.is_token(slot)) std::fill_n(made.begin() + slot * width, width, 0.0);
  return made;
}
}  // namespace

TEST_CASE("causal convolutions keep the length, and later tokens change no earlier output") {
  for (auto const& options : {nn::Conv1d::Options{.kernel = 3, .causal = true},
                              nn::Conv1d::Options{.kernel = 2, .dilation = 4, .groups = 2, .causal = true},
                              nn::Conv1d::Options{.kernel = 3, .dilation = 2, .groups = 4, .causal = true}}) {
    Index const length = 9;
    auto x = lockstep_test::values<double>(length * 4, 1);
    auto const before = of(nn::Conv1d(4, 4, options), x, {1, length, 4});
    REQUIRE(before.size() == x.size());
    for (Index changed = 0; changed < length; ++changed) {
      auto other = x;
      for (Index c = 0; c < 4; ++c) other[static_cast<std::size_t>(changed * 4 + c)] += 1;
      auto const after = of(nn::Conv1d(4, 4, options), other, {1, length, 4});
      auto const at = before.begin() + changed * 4;
      CHECK(std::equal(before.begin(), at, after.begin()));
      CHECK_FALSE(std::equal(at, at + 4, after.begin() + changed * 4));  // its own token is visible
    }
  }
}

TEST_CASE("dilated and causal convolutions of a batch of sequences equal those of each alone") {
  for (auto const& options : {nn::Conv1d::Options{.kernel = 3, .padding = 1, .dilation = 2},
                              nn::Conv1d::Options{.kernel = 3, .stride = 2, .dilation = 2, .causal = true},
                              nn::Conv1d::Options{.kernel = 3, .padding = 2, .dilation = 2, .groups = 2}}) {
    nn::Conv1d const layer(2, 2, options);
    std::vector<std::int32_t> const lengths{5, 9, 1};
    auto const x = lockstep_test::values<double>(3 * 9 * 2, 1);
    auto const together = of(layer, x, {3, 9, 2}, lengths);
    auto const each = static_cast<Index>(together.size()) / 3;
    for (Index row = 0; row < 3; ++row) {
      Index const length = lengths[static_cast<std::size_t>(row)];
      std::vector<double> const one(x.begin() + row * 18, x.begin() + row * 18 + length * 2);
      auto const reach = 2 * 2 + 1, padding = static_cast<int>(options.causal ? 4 : 2 * options.padding.values[0]);
      std::vector<double> expected(static_cast<std::size_t>(each));
      if (length + padding >= reach) {
        auto const result = of(layer, one, {1, length, 2});
        std::copy(result.begin(), result.end(), expected.begin());
      }
      CHECK(std::equal(expected.begin(), expected.end(), together.begin() + row * each));
    }
  }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  auto one = trial<T>(nn::Conv3d(3, 8, {.padding = 1}), Extents<5>{19, 3, 6, 7, 3}, alone);
  double const loss = one.run(1);
  for (int threads : {1, 2, 4}) {
    auto other = trial<T>(nn::Conv3d(3, 8, {.padding = 1}), Extents<5>{19, 3, 6, 7, 3}, alone);
    CHECK(other.run(threads) == loss);
    CHECK(same_bits(other.gradients, one.gradients));
  }
}

TEST_CASE("micro-batches accumulate") {
  auto one = trial<double>(Block{}, Extents<4>{2, 4, 3, 4}, twice), two = one;
  one.run(1);
  two.run(1, 2);
  for (std::size_t i = 0; i < one.gradients.size(); ++i)  // x + x is exact; sums may have one more rounding
    CHECK(two.gradients[i] == doctest::Approx(2 * one.gradients[i]).epsilon(1e-14));
}

TEST_CASE("channels are last, and weights are as in PyTorch: torch.nn.functional.conv1d on a small case") {
  // conv1d([[[1, 2, 3], [4, 5, 6]]], [[[1, 10], [100, 1000]]], bias=[0.5]): 1 + 20 + 400 + 5000 + 0.5, and so on.
  nn::Conv1d layer(2, 1, {.kernel = 2});
  auto const layout = nn::ParameterLayout::of(layer);
  std::vector<double> values(static_cast<std::size_t>(layout.size()));
  for (std::size_t i = 0; i < 4; ++i)
    values[static_cast<std::size_t>(layout.entries()[0].offset) + i] = std::array{1., 10., 100., 1000.}[i];
  values[static_cast<std::size_t>(layout.entries()[1].offset)] = 0.5;
  CHECK(layout.entries()[0].shape == std::vector<Index>{1, 2, 2});
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), nullptr, 2);
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  std::vector<double> x{1, 4, 2, 5, 3, 6};
  auto const y = layer.forward(context, context.input(TensorView<double const, 3, HostSpace>(x.data(), {1, 3, 2})));
  CHECK(y.value.extent == Extents<3>{1, 2, 1});
  CHECK(y.value(0, 0, 0) == 5421.5);
  CHECK(y.value(0, 1, 0) == 6532.5);
}

TEST_CASE("initial values are PyTorch's, uniform within 1 / sqrt of the inputs of one output") {
  nn::Conv3d layer(4, 8, {.kernel = {1, 3, 3}});
  auto const layout = nn::ParameterLayout::of(layer);
  CHECK(layout.entries()[0].shape == std::vector<Index>{8, 4, 1, 3, 3});
  for (auto const& entry : layout.entries()) CHECK(entry.initializer.scale == doctest::Approx(1.0 / 6));
  nn::Conv2d grouped(8, 4, {.groups = 2});
  auto const of_groups = nn::ParameterLayout::of(grouped);
  CHECK(of_groups.entries()[0].shape == std::vector<Index>{4, 4, 3, 3});
  for (auto const& entry : of_groups.entries()) CHECK(entry.initializer.scale == doctest::Approx(1.0 / 6));
  CHECK(grouped.inputs() == 8);
  CHECK(grouped.outputs() == 4);
  nn::Conv2d default_layer(1, 1);
  CHECK(nn::ParameterLayout::of(default_layer).entries()[0].shape == std::vector<Index>{1, 1, 3, 3});
}

namespace {
/// Two convolutions of sequences, and a pooled row.
struct Series {
  nn::Conv1d first{3, 4, {.kernel = 5, .stride = 2, .padding = 2}}, second{4, 2, {.kernel = 3, .padding = 1}};
  void visit(auto&& each) { each("first", first), each("second", second); }
};
[[nodiscard]] auto of_series(std::vector<std::int32_t> lengths, Index length) {
  return [lengths = std::move(lengths), length, positions = std::vector<Index>(lengths.size())](
             auto& context, Series const& s, auto const& x) {
    auto const rows = static_cast<Index>(lengths.size());
    using Layout = nn::SequenceLayout<HostSpace>;
    typename std::decay_t<decltype(context)>::template Variable<2> const tokens = x.as_rows();
    nn::Sequence<typename std::decay_t<decltype(context)>::Scalar, HostSpace> const in{
        tokens, Layout::padded(length, {lengths.data(), {rows}}, {positions.data(), {rows}})};
    auto const h = s.first.forward(context, in);
    for (Index row = 0; row < rows; ++row) CHECK(h.layout.tokens(row) == (in.layout.tokens(row) + 1) / 2);
    return nn::mean_pool(context, s.second.forward(context, nn::relu(context, h)));
  };
}
}  // namespace

TEST_CASE("padding of sequences is ignored: each gives its result alone") {
  auto const result = trial<double>(Series{}, Extents<3>{4, 9, 3}, of_series({9, 0, 1, 6}, 9)).check();
  CAPTURE(result.where);
  CHECK(result.ok());
  auto together = trial<double>(Series{}, Extents<3>{2, 9, 3}, of_series({5, 9}, 9));
  auto const weights = together.layout.entries();
  auto const first = static_cast<std::size_t>(weights[0].offset);
  std::vector<std::vector<double>> pooled;
  for (Index shorter : {0, 1}) {
    auto t = trial<double>(Series{}, Extents<3>{1, shorter ? 5 : 9, 3}, of_series({5}, shorter ? 5 : 9));
    for (std::size_t i = 0; i < 15; ++i)
      t.values[static_cast<std::size_t>(t.layout.entries()[0].offset) + i] = together.values[first + i];
    for (std::size_t e = 1; e < weights.size(); ++e)
      std::copy_n(together.values.data() + weights[e].offset, weights[e].size,
                  t.values.data() + t.layout.entries()[e].offset);
    ThreadPool pool(1);
    nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
    context.parameters().bind(t.values.data(), t.gradients.data(), t.layout.entries().size());
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 3);
    pooled.push_back({t.model.forward(context, Batch{}).sum});
  }
  CHECK(pooled[0] == pooled[1]);
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<Index> const offsets{0, 4}, positions{0};
  nn::Sequence<float, HostSpace> const ragged{
      context.variable<2>({4, 3}),
      nn::SequenceLayout<HostSpace>::ragged(4, 4, {offsets.data(), {2}}, {positions.data(), {1}})};
  CHECK_THROWS_WITH_AS(static_cast<void>(Series{}.first.forward(context, ragged)),
                       doctest::Contains("the sequences are concatenated"), ShapeError);
}

TEST_CASE("sequences without tokens give none, whatever the padding, and gradients of zero") {
  for (Index const padding : {0, 3}) {
    auto t = trial<float>(Series{.first = {3, 4, {.padding = padding}}}, Extents<3>{3, 0, 3}, of_series({0, 0, 0}, 0));
    t.gradients.assign(t.gradients.size(), 7.0f);
    CHECK(t.run(1) == 0);
    for (auto const& entry : t.layout.entries())
      for (Index i = 0; i < entry.size; ++i) CHECK(t.gradients[static_cast<std::size_t>(entry.offset + i)] == 0);
  }
}

TEST_CASE("no samples, and no bias") {
  auto t = trial<float>(nn::Conv2d(2, 3, {.bias = nn::Bias::none}), Extents<4>{0, 5, 5, 2}, alone);
  CHECK(t.layout.entries().size() == 2);
  t.gradients.assign(t.gradients.size(), 7.0f);
  CHECK(t.run(2) == 0);
  auto const& weight = t.layout.entries()[1];
  for (Index i = 0; i < weight.size; ++i) CHECK(t.gradients[static_cast<std::size_t>(weight.offset + i)] == 0);
}

TEST_CASE("an empty batch of padded time series has no places, and all spatial layers accept it") {
  auto const all = [](auto& context, Stages1 const& s, auto const& x) {
    auto const y = s.norm.forward(context, s.first.forward(context, x));
    auto const larger = nn::Upsample1d{}.forward(context, s.up.forward(context, y));
    auto const largest = nn::MaxPool1d({.kernel = 3, .stride = 2}).forward(context, larger);
    return nn::global_average_pool(context, nn::AvgPool1d({.kernel = 5, .stride = 1}).forward(context, largest));
  };
  auto t = trial<float>(Stages1{}, Extents<3>{0, 0, 2}, all);
  t.gradients.assign(t.gradients.size(), 7.0f);
  CHECK(t.run(1) == 0);
  for (auto const& entry : t.layout.entries())
    for (Index i = 0; i < entry.size; ++i) CHECK(t.gradients[static_cast<std::size_t>(entry.offset + i)] == 0);
}

TEST_CASE("invalid shapes are refused") {
  CHECK_THROWS_WITH_AS(nn::Conv2d(0, 3), doctest::Contains("0 inputs, 3 outputs"), ConfigError);
  CHECK_THROWS_WITH_AS(nn::Conv2d(3, 0), doctest::Contains("3 inputs, 0 outputs"), ConfigError);
  CHECK_THROWS_AS(nn::Conv1d(1, 1, {.kernel = 0}), ConfigError);
  CHECK_THROWS_AS(nn::Conv1d(1, 1, {.stride = 0}), ConfigError);
  CHECK_THROWS_AS(nn::Conv1d(1, 1, {.padding = -1}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::Conv1d(1, 1, {.dilation = 0}),
                       "Convolution: dilation [0], 1 groups; both must be at least 1", ConfigError);
  CHECK_THROWS_AS(nn::Conv1d(1, 1, {.groups = 0}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::Conv1d(12, 18, {.groups = 4}),
                       "Convolution: 12 inputs and 18 outputs in 4 groups, which must divide both; the nearest that do "
                       "are 3 and 6",
                       ConfigError);
  CHECK_THROWS_WITH_AS(nn::Conv2d(4, 6, {.groups = 4}), doctest::Contains("at most 2 do"), ConfigError);
  CHECK_THROWS_WITH_AS(
      nn::Conv1d(1, 1, {.padding = 1, .causal = true}),
      "Convolution: causal, with padding [1]; a causal convolution has dilation * (kernel - 1) of padding "
      "before and none after, so the option must be 0",
      ConfigError);
  CHECK_THROWS_WITH_AS(
      nn::Conv2d(1, 1, {.causal = true}),
      "Convolution: causal in 2 dimensions of space; only a convolution over one dimension can be causal", ConfigError);
  CHECK_THROWS_WITH_AS(
      trial<float>(nn::Conv1d(3, 1), Extents<3>{1, 5, 2}, alone).run(1),
      "Convolution layer: the input is [1, 5, 2] and the layer has 3 input channels; the last extent must be 3",
      ShapeError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::Conv1d(2, 1), Extents<3>{1, 2, 2}, alone).run(1),
                       doctest::Contains("the kernel must fit into the padded input"), ShapeError);
}

TEST_CASE("a step of spatial layers does not allocate after its shapes were seen once" *
          doctest::skip(!lockstep_test::counts_mallocs)) {
  auto const apply = [](auto& context, Stages const& s, auto const& x) {
    auto const y = s.pool.forward(context, s.norm.forward(context, s.first.forward(context, x)));
    return nn::global_average_pool(context, s.second.forward(context, y));
  };
  auto t = trial<float>(Stages{}, Extents<4>{18, 10, 9, 2}, apply);
  for (int threads : {1, 2}) CHECK(mallocs_of_later_steps(t, threads) == 0);
}
