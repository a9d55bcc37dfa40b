// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/variable.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/convolution/concatenate_channels.hpp>
#include <lockstep/nn/convolution/slice_channels.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/exp.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/silu.hpp>
#include <lockstep/nn/elementwise/subtract.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/space_check.hpp"

using namespace lockstep;

namespace {
struct Nothing {
  void visit(auto&&) {}
};
auto const of_pictures = [](auto& c, Nothing const&, auto const& x) {
  auto const two = nn::slice_channels(c, x, 1, 2);
  auto const joined = nn::concatenate_channels(c, nn::add(c, nn::relu(c, two), nn::gelu(c, two)), two, x);
  return nn::subtract(c, nn::multiply(c, nn::silu(c, joined), nn::sigmoid(c, joined)), nn::exp(c, nn::tanh(c, joined)));
};
}  // namespace

TEST_CASE("a reshaped variable shares value and gradient") {
  std::array<float, 6> values{1, 2, 3, 4, 5, 6}, gradients{6, 5, 4, 3, 2, 1};
  nn::GradientSlot<float> slot{gradients.data(), 6};
  nn::Variable<float, 1, HostSpace> const flat{{values.data(), {6}}, &slot};
  auto const matrix = flat.reshape(Extents<2>{2, 3});
  CHECK(matrix.extent(0) == 2);
  CHECK(matrix.extent(1) == 3);
  CHECK(matrix.value(1, 0) == 4);
  CHECK(matrix.gradient()(1, 2) == 1);
  CHECK(flat.reshape(Extents<4>{1, 3, 1, 2}).as_rows().value.extent == Extents<2>{3, 2});
  CHECK(flat.reshape(Extents<3>{2, 3, 1}).as_rows().value.extent == Extents<2>{6, 1});
  CHECK(matrix.as_rows().value.extent == matrix.value.extent);
  CHECK_THROWS_WITH_AS(static_cast<void>(matrix.reshape(Extents<3>{2, 3, 2})),
                       "reshape: [2, 3] to [2, 3, 2]; both must have as many elements", ShapeError);
}

TEST_CASE("elementwise and channel functions accept images") {
  auto t = space_check::trial<double>(Nothing{}, Extents<4>{2, 3, 2, 4}, of_pictures);
  auto const result = t.check();
  CAPTURE(result.where);
  CHECK(result.ok());
  CHECK(space_check::trial<float>(Nothing{}, Extents<3>{0, 5, 3}, of_pictures).run(1) == 0);
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<4>({2, 3, 4, 5}), y = context.variable<4>({2, 4, 3, 5});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::concatenate_channels(context, x, y)),
      "concatenate_channels: the first part is [2, 3, 4, 5] and another [2, 4, 3, 5]; all extents except "
      "the last must be equal",
      ShapeError);
  CHECK_THROWS_AS(static_cast<void>(nn::add(context, x, y)), ShapeError);
}

TEST_CASE("losses accept images, with each place as a row") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const image = context.variable<4>({2, 3, 2, 4});
  auto const rows = context.variable<2>({12, 4});
  for (Index i = 0; i < image.value.size(); ++i)
    image.value.data[i] = rows.value.data[i] = static_cast<float>(space_check::number(3, i));
  std::vector<int> labels;
  std::vector<float> factors, targets;
  for (int i = 0; i < 12; ++i) labels.push_back(i * 7 % 4), factors.push_back(0.25f * static_cast<float>(i));
  for (int i = 0; i < 48; ++i) targets.push_back(0.125f * static_cast<float>(i % 11));
  TensorView<int const, 3, HostSpace> const label(labels.data(), {2, 3, 2});
  TensorView<float const, 3, HostSpace> const factor(factors.data(), {2, 3, 2});
  TensorView<float const, 4, HostSpace> const target(targets.data(), {2, 3, 2, 4});
  auto const of_both = [&](auto const& loss) {
    auto const got = loss(image), expected = loss(rows);
    CHECK(got.sum == expected.sum);
    CHECK(got.weight == expected.weight);
  };
  of_both([&](auto const& x) { return nn::cross_entropy(context, x, label); });
  of_both([&](auto const& x) { return nn::cross_entropy(context, x, label, factor); });
  of_both([&](auto const& x) { return nn::mean_squared_error(context, x, target); });
  labels[7] = 9;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::cross_entropy(context, image, label)),
                       doctest::Contains("token 1 of row 1 of the batch has label 9"), RowError);
  auto const from = context.gradient(image), to = context.gradient(rows);
  CHECK(std::equal(from.data, from.data + 48, to.data));
}
