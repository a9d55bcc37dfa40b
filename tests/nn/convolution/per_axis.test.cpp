// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/per_axis.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct Options {
  nn::PerAxis<3> stride = 1;
};
}  // namespace

TEST_CASE("one number applies to all axes, or each has its own") {
  CHECK(Options{}.stride.values == Extents<3>{1, 1, 1});
  CHECK(Options{.stride = 4}.stride.values == Extents<3>{4, 4, 4});
  CHECK(Options{.stride = {1, 2, 3}}.stride.values == Extents<3>{1, 2, 3});
  CHECK(nn::PerAxis<1>(5).values == Extents<1>{5});
  CHECK(nn::PerAxis<2>(2) == nn::PerAxis<2>(2, 2));
}

TEST_CASE("fewer axes are the last of three") {
  CHECK(nn::PerAxis<1>(7).to_3d(1) == Extents<3>{1, 1, 7});
  CHECK(nn::PerAxis<2>(3, 4).to_3d(0) == Extents<3>{0, 3, 4});
  CHECK(nn::PerAxis<3>(2, 3, 4).to_3d(9) == Extents<3>{2, 3, 4});
  CHECK(nn::PerAxis<1>::axis_in_3d(0) == 2);
  CHECK(nn::PerAxis<2>::axis_in_3d(0) == 1);
  CHECK(nn::PerAxis<3>::axis_in_3d(2) == 2);
  CHECK(nn::PerAxis<3>(4, 2, 3).min() == 2);
}
