// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/convolution_shape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Part inside the input of one output position's row of taps along the width. It has `count` positions from `position`
/// on, a dilation apart, the first at tap `tap`. `count` is 0 if the whole row is padding.
struct TapRow {
  Index position, tap, count;
};

/// Calls f(row, tap row) for each row of taps of the output positions [first, first + count) of one sample, position by
/// position. `row` counts the rows. Without dilation, the taps of a row and their channels are contiguous in the input
/// and in the patch.
template <class Function>
void for_tap_rows(ConvolutionShape const& s, Index first, Index count, Function&& f) {
  auto const height = s.result(1), width = s.result(2), dilation = s.dilation[2];
  auto const taps_over = [dilation](Index positions) {
    return dilation == 1 ? positions : (positions + dilation - 1) / dilation;
  };
  Index row = 0;
  for (Index position = first; position < first + count; ++position) {
    Index const d = position / (height * width) * s.stride[0] - s.padding[0];
    Index const h = position / width % height * s.stride[1] - s.padding[1];
    Index const w = position % width * s.stride[2] - s.padding[2];
    Index const begin = w < 0 ? taps_over(-w) : 0, end = std::min(s.kernel[2], taps_over(s.extent[2] - w));
    Index from_d = d;
    for (Index kd = 0; kd < s.kernel[0]; ++kd, from_d += s.dilation[0]) {
      Index from_h = h;
      for (Index kh = 0; kh < s.kernel[1]; ++kh, ++row, from_h += s.dilation[1]) {
        bool const inside = from_d >= 0 && from_d < s.extent[0] && from_h >= 0 && from_h < s.extent[1] && begin < end;
        Index const line = (from_d * s.extent[1] + from_h) * s.extent[2];
        f(row, inside ? TapRow{line + w + begin * dilation, begin, end - begin} : TapRow{0, 0, 0});
      }
    }
  }
}

/// Returns whether a row of taps with its channels is contiguous in the input. Otherwise only each tap is.
[[nodiscard]] inline bool taps_are_contiguous(ConvolutionShape const& s) noexcept {
  return s.groups == 1 && s.dilation[2] == 1;
}

/// Computes patches[i] = the input that the kernel covers at the output position first + i, with zeros in padding. `x`
/// is one sample, from a group's first channel on.
/// @shape x [positions, inputs], from a group's first channel on   @shape patches [count, taps * inputs / groups]
template <class Scalar>
void gather_patches(ConvolutionShape const& s, Scalar const* x, Index first, Index count, Scalar* patches) {
  Index const c = s.group_inputs(), length = s.kernel[2] * c, step = s.dilation[2] * s.inputs;
  auto const gather = [&](auto const& copy) {
    for_tap_rows(s, first, count, [&](Index row, TapRow const& taps) {
      auto* const to = patches + row * length;
      std::fill_n(to, taps.tap * c, Scalar{0});
      copy(taps, x + taps.position * s.inputs, to + taps.tap * c);
      std::fill(to + (taps.tap + taps.count) * c, to + length, Scalar{0});
    });
  };
  if (taps_are_contiguous(s))
    gather([&](TapRow const& taps, Scalar const* from, Scalar* to) { std::copy_n(from, taps.count * c, to); });
  else
    gather([&](TapRow const& taps, Scalar const* from, Scalar* to) {
      for (Index tap = 0; tap < taps.count; ++tap) std::copy_n(from + tap * step, c, to + tap * c);
    });
}

/// The adjoint of gather_patches: adds each patch to the positions of x that it was gathered from, in the order of
/// output positions.
template <class Scalar>
void scatter_patches(ConvolutionShape const& s, Scalar const* patches, Index first, Index count, Scalar* x) {
  Index const c = s.group_inputs(), length = s.kernel[2] * c, step = s.dilation[2] * s.inputs;
  if (taps_are_contiguous(s))
    return for_tap_rows(s, first, count, [&](Index row, TapRow const& taps) {
      auto const* const from = patches + row * length + taps.tap * c;
      auto* const to = x + taps.position * c;
      for (Index i = 0; i < taps.count * c; ++i) to[i] += from[i];
    });
  for_tap_rows(s, first, count, [&](Index row, TapRow const& taps) {
    auto const* const from = patches + row * length + taps.tap * c;
    auto* const to = x + taps.position * s.inputs;
    for (Index tap = 0; tap < taps.count; ++tap)
      for (Index i = 0; i < c; ++i) to[tap * step + i] += from[tap * c + i];
  });
}

}}}  // namespace lockstep::kernel::detail
