// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/kernel/pooling/pooling_shape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes the divisor of the mean of each output position: the positions of its window within x, and within `padding`
/// on either side. For a window that is not at the border, it is the number of taps.
class WindowDivisor {
 public:
  constexpr WindowDivisor(PoolingShape const& s, Extents<3> const& padding) noexcept
      : shape_(s),
        padding_(padding),
        varies_(s.padding != padding_ || s.padding_after != padding_ || s.is_adaptive()) {}

  [[nodiscard]] constexpr Index operator()(Index position) const noexcept {
    if (!varies_) return shape_.taps();
    auto const result = shape_.result();
    Extents<3> const at{position / (result[1] * result[2]), position / result[2] % result[1], position % result[2]};
    Index count = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      Index const first = shape_.begin(axis, at[axis]), end = shape_.end(axis, at[axis]), low = -padding_[axis],
                  high = shape_.extent[axis] + padding_[axis];
      count *= (end < high ? end : high) - (first > low ? first : low);
    }
    return count;
  }

 private:
  PoolingShape shape_;
  Extents<3> padding_;
  bool varies_;
};

}}}  // namespace lockstep::kernel::detail
