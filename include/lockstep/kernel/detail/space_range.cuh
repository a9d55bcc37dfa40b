// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Ranges along the three axes of space.
struct SpaceRange {
  Extents<3> begin, end;

  /// Calls f(place) for each place of the range within `extent`, in order.
  template <class F>
  __device__ void for_places(Extents<3> const& extent, F const& f) const {
    for (Index d = begin[0]; d < end[0]; ++d)
      for (Index h = begin[1]; h < end[1]; ++h)
        for (Index w = begin[2]; w < end[2]; ++w) f((d * extent[1] + h) * extent[2] + w);
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

__device__ inline Extents<3> place_at(Extents<3> const& extent, Index place) {
  return {place / (extent[1] * extent[2]), place / extent[2] % extent[1], place % extent[2]};
}
/// Returns the places of x that an output place reads.
__device__ inline SpaceRange window_of(ConvolutionShape const& s, Index output) {
  auto const at = place_at(s.result(), output);
  SpaceRange range{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto const first = at[axis] * s.stride[axis] - s.padding[axis];
    range.begin[axis] = max(Index{0}, first);
    range.end[axis] = min(s.extent[axis], first + s.kernel[axis]);
  }
  return range;
}
/// Returns the output places whose kernel reaches over a place of x: all that read it, and with dilation others, too.
__device__ inline SpaceRange lookers_at(ConvolutionShape const& s, Index place) {
  auto const at = place_at(s.extent, place);
  SpaceRange range{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto const last = at[axis] + s.padding[axis], first = last - s.reach(axis) + 1;
    range.begin[axis] = first > 0 ? (first + s.stride[axis] - 1) / s.stride[axis] : 0;
    range.end[axis] = min(s.result(axis), last / s.stride[axis] + 1);
  }
  return range;
}
/// Returns the tap along an axis at this distance from the first (not beyond the last), or -1 for none.
__device__ inline Index tap_behind(ConvolutionShape const& s, std::size_t axis, Index distance) {
  if (s.dilation[axis] == 1) return distance;
  return distance % s.dilation[axis] == 0 ? distance / s.dilation[axis] : -1;
}
/// Calls f(output place, tap) for each output place that reads a place of x, in order.
template <class F>
__device__ void for_lookers(ConvolutionShape const& s, Index place, F const& f) {
  auto const here = place_at(s.extent, place);
  auto const result = s.result();
  auto const lookers = lookers_at(s, place);
  for (auto d = lookers.begin[0]; d < lookers.end[0]; ++d)
    for (auto h = lookers.begin[1]; h < lookers.end[1]; ++h)
      for (auto w = lookers.begin[2]; w < lookers.end[2]; ++w) {
        auto const i = tap_behind(s, 0, here[0] - d * s.stride[0] + s.padding[0]),
                   j = tap_behind(s, 1, here[1] - h * s.stride[1] + s.padding[1]),
                   k = tap_behind(s, 2, here[2] - w * s.stride[2] + s.padding[2]);
        if (i >= 0 && j >= 0 && k >= 0) f((d * result[1] + h) * result[2] + w, (i * s.kernel[1] + j) * s.kernel[2] + k);
      }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
