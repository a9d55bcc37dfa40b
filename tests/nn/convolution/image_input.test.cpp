// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/image_input.hpp>

#include <doctest/doctest.h>

#include <numeric>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;

namespace {
struct Fixture {
  ThreadPool pool{1};
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(2 * 12);
  Fixture() {
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 0);
  }
};
struct Column {
  TensorView<std::uint8_t const, 2, HostSpace> values;
  TensorView<std::int32_t const, 1, HostSpace> lengths;
};
}  // namespace

TEST_CASE("bytes become places and channels, normalized by channel") {
  Fixture f;
  nn::ImageInput<2> const layer({.extent = {2, 3}, .mean = {0.5, 0.25}, .deviation = {0.5, 1}});
  CHECK(layer.channels() == 2);
  CHECK(layer.sample_size() == 12);
  auto const y = layer.forward(f.context, view(std::as_const(f.bytes), 2, 12));
  CHECK(y.value.extent == Extents<4>{2, 2, 3, 2});
  CHECK(y.slot == nullptr);
  CHECK(y.value(1, 0, 2, 0) == doctest::Approx((16 / 255. - 0.5) / 0.5).epsilon(1e-14));
  CHECK(y.value(1, 1, 2, 1) == doctest::Approx(23 / 255. - 0.25).epsilon(1e-14));
  auto const same = layer.forward(f.context, view(std::as_const(f.bytes), 2, 2, 3, 2));
  CHECK(std::ranges::equal(same.value.span(), y.value.span()));
}

TEST_CASE("a column is read unchanged; a sample that is too short is named") {
  Fixture f;
  nn::ImageInput<3> const layer({.extent = {3, 2, 2}});
  std::vector<std::int32_t> lengths{12, 12};
  Column const column{view(std::as_const(f.bytes), 2, 12), view(std::as_const(lengths), 2)};
  auto const y = layer.forward(f.context, column).value;
  CHECK(y.extent == Extents<5>{2, 3, 2, 2, 1});
  CHECK(y(1, 2, 1, 1, 0) == doctest::Approx((23 / 255. - 0.5) / 0.5).epsilon(1e-14));  // by default
  lengths = {13, 12};
  CHECK_THROWS_WITH_AS(static_cast<void>(layer.forward(f.context, column)), doctest::Contains("row 0 of the batch"),
                       DataError);
  lengths = {12, 11};
  CHECK_THROWS_WITH_AS(static_cast<void>(layer.forward(f.context, column)),
                       "ImageInput: row 1 of the batch has 11 bytes; each sample needs 12", DataError);
}

TEST_CASE("invalid sizes are refused") {
  Fixture f;
  CHECK_THROWS_WITH_AS(nn::ImageInput<1>({.extent = 3, .mean = {0, 0}, .deviation = {1}}),
                       doctest::Contains("2 means and 1 deviations"), ConfigError);
  CHECK_THROWS_AS(nn::ImageInput<1>({.extent = 0}), ConfigError);
  CHECK_NOTHROW(nn::ImageInput<1>({.extent = 1}));
  CHECK_THROWS_AS(nn::ImageInput<1>({.extent = 1, .mean = {0}, .deviation = {0}}), ConfigError);
  CHECK_THROWS_AS(nn::ImageInput<1>({.extent = 1, .mean = {}, .deviation = {}}), ConfigError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::ImageInput<1>({.extent = 5}).forward(f.context, view(std::as_const(f.bytes), 2, 12))),
      "ImageInput: the input is [2, 12]; each row needs 5 bytes, [5] pixels of 1 channel(s)", ShapeError);
}
