// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/kernel/convolution/pad.hpp>
#include <lockstep/kernel/convolution/upsample.hpp>

/// Cases of kernels whose output positions copy input positions, for every backend.
namespace resampling_cases {
using namespace lockstep;
using kernel::PadMode;
using kernel::PadShape;
using kernel::UpsampleShape;

/// No rows; one axis; three axes, with more channels than a vector has.
inline std::vector<PadShape> pad_shapes() {
  std::vector<PadShape> out;
  for (auto mode : {PadMode::circular, PadMode::reflect, PadMode::replicate, PadMode::zero})
    for (PadShape s : {PadShape{.rows = 0, .channels = 3, .extent = {1, 2, 2}, .before = {0, 9, 1}},
                       {.rows = 2, .extent = {1, 1, 5}, .before = {0, 0, 4}, .after = {0, 0, 1}},
                       {.rows = 2, .channels = 17, .extent = {2, 3, 4}, .before = {1, 0, 2}, .after = {1, 2, 3}}}) {
      s.mode = mode;
      out.push_back(s);
    }
  return out;
}
inline std::vector<UpsampleShape> upsample_shapes() {
  return {{.rows = 0, .channels = 3, .extent = {1, 2, 2}},
          {.rows = 2, .channels = 1, .extent = {1, 1, 5}, .factor = {1, 1, 3}},
          {.rows = 3, .channels = 17, .extent = {2, 3, 4}, .factor = {3, 1, 2}}};
}
/// Shapes for linear upsampling, with and without aligned outer positions, and with extents of 1.
inline std::vector<UpsampleShape> linear_shapes() {
  auto const nearest = upsample_shapes();
  std::vector<UpsampleShape> out;
  for (bool const aligned : {false, true}) {
    for (auto s : nearest) s.aligned = aligned, out.push_back(s);
    out.push_back({.rows = 2, .channels = 3, .extent = {1, 4, 1}, .factor = {1, 3, 4}, .aligned = aligned});
    out.push_back({.rows = 1, .channels = 2, .extent = {1, 7, 5}, .factor = {1, 2, 5}, .aligned = aligned});
  }
  return out;
}

/// Values of y, and the sums of dy over the positions that copy a position of x.
template <class Scalar>
struct Copies {
  std::vector<Scalar> y, sums;
};

/// Computes y[position] = x[source] for source(axis, position) on each axis, or 0 if it is -1 on one of them.
template <class Scalar, class Shape, class Source>
Copies<Scalar> copies(Shape const& s, std::vector<Scalar> const& x, std::vector<Scalar> const& dy,
                      Source const& source) {
  Copies<Scalar> out{std::vector<Scalar>(dy.size()), std::vector<Scalar>(x.size())};
  auto const to = s.result();
  std::size_t i = 0;
  for (Index row = 0; row < s.rows; ++row)
    for (Index d = 0; d < to[0]; ++d)
      for (Index h = 0; h < to[1]; ++h)
        for (Index w = 0; w < to[2]; ++w)
          for (Index c = 0; c < s.channels; ++c, ++i) {
            if (source(0, d) < 0 || source(1, h) < 0 || source(2, w) < 0) continue;
            auto const from =
                ((row * s.extent[0] + source(0, d)) * s.extent[1] + source(1, h)) * s.extent[2] + source(2, w);
            auto const at = static_cast<std::size_t>(from * s.channels + c);
            out.y[i] = x[at];
            out.sums[at] += dy[i];
          }
  return out;
}

}  // namespace resampling_cases
