// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/pooling/pooling_shape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Checks the shape of a pooling. A batch without rows may have no positions.
/// @throws ShapeError unless all windows have positions of x, without dilation, and x and y have as many elements as
/// the shape requires
inline void check_pooling(PoolingShape const& s, Index x, Index y) {
  bool fits = s.rows == 0 || s.output_positions() > 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (s.adaptive[axis] != 0) {
      fits = fits && s.adaptive[axis] > 0 && (s.rows == 0 || s.extent[axis] > 0);
      continue;
    }
    Index const last = (s.result(axis) - 1) * s.stride[axis] - s.padding[axis];  // first position of the last window
    fits = fits && 2 * s.padding[axis] <= s.kernel[axis] && (s.rows == 0 || std::max<Index>(0, last) < s.extent[axis]);
  }
  expect<ShapeError>(fits || !s.is_adaptive(), [&] {
    return "adaptive pooling: x has extent " + to_string(s.extent) + " and " + to_string(s.result()) +
           " windows; both must be at least 1";
  });
  expect<ShapeError>(fits, [&] {
    return "pooling: x has extent " + to_string(s.extent) + ", with " + to_string(s.padding) +
           " of padding on either side, and the window " + to_string(s.kernel) +
           "; the output must not be empty, the window must fit into the padded input, padding must be at most half "
           "the window, and no window may begin after x";
  });
  expect<ShapeError>(s.dilation == Extents<3>{1, 1, 1}, [&] {
    return "pooling: the window has dilation " + to_string(s.dilation) + "; windows have adjacent positions";
  });
  auto const wanted_x = s.rows * s.input_size(), wanted_y = s.rows * s.output_positions() * s.inputs;
  expect<ShapeError>(x == wanted_x && y == wanted_y, [&] {
    return "pooling: x and y have " + std::to_string(x) + " and " + std::to_string(y) + " elements; the shape needs " +
           std::to_string(wanted_x) + " and " + std::to_string(wanted_y);
  });
}

}}}  // namespace lockstep::kernel::detail
