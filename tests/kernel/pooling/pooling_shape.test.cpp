// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/pooling/pooling_shape.hpp>

#include <doctest/doctest.h>

using namespace lockstep;
using kernel::ConvolutionShape;
using kernel::PoolingShape;

namespace {
/// Checks that windows contain exactly the positions that say so.
void check_windows(PoolingShape const& s, std::size_t axis) {
  for (Index position = 0; position < s.extent[axis]; ++position)
    for (Index window = 0; window < s.result(axis); ++window) {
      bool const contains = s.begin(axis, window) <= position && position < s.end(axis, window);
      bool const is_window = s.first_window(axis, position) <= window && window < s.end_window(axis, position);
      if (contains != is_window) FAIL(s.extent[axis] << " " << s.result(axis) << " " << position << " " << window);
    }
}
}  // namespace

TEST_CASE("adaptive windows of any extent contain each position, and each knows its windows") {
  for (Index extent = 1; extent < 40; ++extent)
    for (Index count = 1; count < 40; ++count) {
      PoolingShape s = ConvolutionShape{.rows = 1, .extent = {1, extent, 1}};
      s.set_adaptive(1, count);
      REQUIRE(s.result() == Extents<3>{1, count, 1});
      check_windows(s, 1);
      for (Index window = 0; window < count; ++window) {
        REQUIRE(s.end(1, window) - s.begin(1, window) >= 1);
        REQUIRE(s.end(1, window) - s.begin(1, window) <= s.kernel[1]);
      }
      REQUIRE(s.begin(1, 0) == 0);
      REQUIRE(s.end(1, count - 1) == extent);
    }
}

TEST_CASE("windows by kernel, stride and padding are those of a convolution") {
  for (Index kernel : {1, 2, 3})
    for (Index stride : {1, 2, 4})
      for (Index padding = 0; 2 * padding <= kernel; ++padding) {
        ConvolutionShape const convolution{.rows = 1,
                                           .extent = {1, 1, 11},
                                           .kernel = {1, 1, kernel},
                                           .stride = {1, 1, stride},
                                           .padding = {0, 0, padding}};
        PoolingShape const s = convolution;
        CHECK_FALSE(s.is_adaptive());
        CHECK(s.result() == convolution.result());
        CHECK(s.output_positions() == convolution.output_positions());
        check_windows(s, 2);
      }
}

TEST_CASE("adaptive windows differ from windows by kernel and stride") {
  PoolingShape const windows = ConvolutionShape{.rows = 1, .extent = {1, 1, 10}, .kernel = {1, 1, 4}};
  auto adaptive = windows;
  adaptive.set_adaptive(2, 5);
  CHECK(static_cast<ConvolutionShape const&>(adaptive) == static_cast<ConvolutionShape const&>(windows));
  CHECK(adaptive != windows);
  CHECK(PoolingShape(windows) == windows);
}
