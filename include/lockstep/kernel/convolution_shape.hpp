// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Extents of a convolution over up to three dimensions of space. Missing dimensions come first and have extent 1.
/// Activations are channels-last, [rows, depth, height, width, channels]. Weights are [outputs, inputs / groups, depth,
/// height, width]. Adjacent channels form groups: a group's outputs depend only on its inputs.
struct ConvolutionShape {
  Index rows = 0;                      ///< samples
  Index inputs = 1;                    ///< channels of x
  Index outputs = 1;                   ///< channels of y
  Extents<3> extent{1, 1, 1};          ///< of x
  Extents<3> kernel{1, 1, 1};          ///< of the weight
  Extents<3> stride{1, 1, 1};          ///< between adjacent outputs, in positions of x
  Extents<3> padding{0, 0, 0};         ///< zeros before x
  Extents<3> padding_after = padding;  ///< zeros after x
  Extents<3> dilation{1, 1, 1};        ///< between adjacent taps, in positions of x
  Index groups = 1;                    ///< divides inputs and outputs

  /// Compares all members.
  friend bool operator==(ConvolutionShape const&, ConvolutionShape const&) = default;

  /// Returns the extent of y along an axis: 0 if the kernel is longer than the padded input.
  [[nodiscard]] constexpr Index result(std::size_t axis) const noexcept {
    Index const room = extent[axis] + padding[axis] + padding_after[axis] - reach(axis);
    return room < 0 ? 0 : room / stride[axis] + 1;
  }
  /// Returns the extents of y.
  [[nodiscard]] constexpr Extents<3> result() const noexcept { return {result(0), result(1), result(2)}; }
  /// Returns the extent of the kernel along an axis, from its first tap to its last.
  [[nodiscard]] constexpr Index reach(std::size_t axis) const noexcept {
    return dilation[axis] * (kernel[axis] - 1) + 1;
  }
  /// Returns the number of positions of x and of y, and of elements of the kernel.
  [[nodiscard]] constexpr Index input_positions() const noexcept { return elements(extent); }
  [[nodiscard]] constexpr Index output_positions() const noexcept { return elements(result()); }  ///< of y
  /// elements of the kernel, for one pair of channels
  [[nodiscard]] constexpr Index taps() const noexcept { return elements(kernel); }
  /// Returns the number of elements of one sample of x and of y, and of the weight.
  [[nodiscard]] constexpr Index input_size() const noexcept { return input_positions() * inputs; }
  [[nodiscard]] constexpr Index output_size() const noexcept { return output_positions() * outputs; }  ///< of y
  /// of the weight
  [[nodiscard]] constexpr Index weight_size() const noexcept { return outputs * group_inputs() * taps(); }
  /// Returns the number of channels of one group.
  [[nodiscard]] constexpr Index group_inputs() const noexcept { return inputs / groups; }
  [[nodiscard]] constexpr Index group_outputs() const noexcept { return outputs / groups; }  ///< outputs of one group
  /// Returns whether each channel is a group of its own.
  [[nodiscard]] constexpr bool is_depthwise() const noexcept {
    return groups > 1 && groups == inputs && groups == outputs;
  }
};

}}}  // namespace lockstep::kernel
