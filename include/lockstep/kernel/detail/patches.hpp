// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/convolution_shape.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Where the row of taps along the width that belongs to one output place meets the input: `count` places from `place`
/// on, the first under tap `tap`. None when all of it lies in the padding.
struct TapRow {
  Index place, tap, count;
};

/// Calls f(row, tap row) for every row of taps of the output places [first, first + count) of one sample, place by
/// place; `row` counts them. The taps of a row and their channels are contiguous in memory, in the input and in the
/// patch.
template <class F>
void for_tap_rows(ConvolutionShape const& s, Index first, Index count, F&& f) {
  auto const height = s.result(1), width = s.result(2);
  Index row = 0;
  for (Index place = first; place < first + count; ++place) {
    Index const d = place / (height * width) * s.stride[0] - s.padding[0];
    Index const h = place / width % height * s.stride[1] - s.padding[1];
    Index const w = place % width * s.stride[2] - s.padding[2];
    Index const begin = std::max<Index>(0, -w), end = std::min(s.kernel[2], s.extent[2] - w);
    for (Index kd = 0; kd < s.kernel[0]; ++kd) {
      for (Index kh = 0; kh < s.kernel[1]; ++kh, ++row) {
        bool const inside = d + kd >= 0 && d + kd < s.extent[0] && h + kh >= 0 && h + kh < s.extent[1] && begin < end;
        Index const line = ((d + kd) * s.extent[1] + h + kh) * s.extent[2];
        f(row, inside ? TapRow{line + w + begin, begin, end - begin} : TapRow{0, 0, 0});
      }
    }
  }
}

/// patches[i] = what the kernel sees of one sample at the output place first + i, zeros in the padding.
/// @shape x [places, inputs]   @shape patches [count, taps * inputs], overwritten
template <class T>
void gather_patches(ConvolutionShape const& s, T const* x, Index first, Index count, T* patches) {
  Index const c = s.inputs, length = s.kernel[2] * c;
  for_tap_rows(s, first, count, [&](Index row, TapRow const& taps) {
    auto* const to = patches + row * length;
    std::fill_n(to, taps.tap * c, T{0});
    std::copy_n(x + taps.place * c, taps.count * c, to + taps.tap * c);
    std::fill(to + (taps.tap + taps.count) * c, to + length, T{0});
  });
}

/// The adjoint: adds every patch to the places of x that it was gathered from, in the order of output places.
template <class T>
void scatter_patches(ConvolutionShape const& s, T const* patches, Index first, Index count, T* x) {
  Index const c = s.inputs, length = s.kernel[2] * c;
  for_tap_rows(s, first, count, [&](Index row, TapRow const& taps) {
    auto const* const from = patches + row * length + taps.tap * c;
    auto* const to = x + taps.place * c;
    for (Index i = 0; i < taps.count * c; ++i) to[i] += from[i];
  });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
