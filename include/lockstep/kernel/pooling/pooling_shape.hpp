// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/convolution_shape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Windows of a pooling: a convolution's, or adaptive ones. Adaptive window i of n along an axis has the positions from
/// i * extent / n, rounded down, to (i + 1) * extent / n, rounded up, as in PyTorch: widths may differ, and windows may
/// have common positions. Padding, stride and dilation do not apply to them.
struct PoolingShape : ConvolutionShape {
  Extents<3> adaptive{0, 0, 0};  ///< number of adaptive windows along an axis; 0: windows by kernel and stride

  PoolingShape() = default;  ///< makes windows of one position
  /// Takes the windows of a convolution.
  constexpr PoolingShape(ConvolutionShape const& shape) noexcept  // NOLINT(google-explicit-constructor): most windows
      : ConvolutionShape(shape) {}

  /// Makes the windows along an axis adaptive. `kernel` becomes the largest width that they may have.
  constexpr void set_adaptive(std::size_t axis, Index windows) noexcept {
    adaptive[axis] = windows;
    kernel[axis] = std::min(extent[axis], windows > 0 ? extent[axis] / windows + 2 : Index{1});
  }
  /// Returns whether the windows along any axis are adaptive.
  [[nodiscard]] constexpr bool is_adaptive() const noexcept { return adaptive != Extents<3>{}; }

  /// Returns the number of windows along an axis.
  [[nodiscard]] constexpr Index result(std::size_t axis) const noexcept {
    return adaptive[axis] > 0 ? adaptive[axis] : ConvolutionShape::result(axis);
  }
  /// Returns the extents of y.
  [[nodiscard]] constexpr Extents<3> result() const noexcept { return {result(0), result(1), result(2)}; }
  /// Returns the number of windows.
  [[nodiscard]] constexpr Index output_positions() const noexcept { return elements(result()); }

  /// Returns the first position of window `i` along an axis, below 0 in padding, and the position after its last one.
  [[nodiscard]] constexpr Index begin(std::size_t axis, Index i) const noexcept {
    return adaptive[axis] > 0 ? i * extent[axis] / adaptive[axis] : i * stride[axis] - padding[axis];
  }
  /// Returns the position after the last one of window `i` along an axis, which may be after x.
  [[nodiscard]] constexpr Index end(std::size_t axis, Index i) const noexcept {
    return adaptive[axis] > 0 ? ((i + 1) * extent[axis] + adaptive[axis] - 1) / adaptive[axis]
                              : begin(axis, i) + kernel[axis];
  }
  /// Returns the first window along an axis that contains a position of x.
  [[nodiscard]] constexpr Index first_window(std::size_t axis, Index position) const noexcept {
    if (adaptive[axis] > 0) return position * adaptive[axis] / extent[axis];
    auto const first = position + padding[axis] - kernel[axis] + 1;
    return first > 0 ? (first + stride[axis] - 1) / stride[axis] : 0;
  }
  /// Returns the window after the last one along an axis that contains a position of x.
  [[nodiscard]] constexpr Index end_window(std::size_t axis, Index position) const noexcept {
    if (adaptive[axis] > 0) return ((position + 1) * adaptive[axis] + extent[axis] - 1) / extent[axis];
    return std::min(result(axis), (position + padding[axis]) / stride[axis] + 1);
  }

  friend bool operator==(PoolingShape const&, PoolingShape const&) = default;
};

}}}  // namespace lockstep::kernel
