// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Ranges along the three axes of space.
struct SpaceRange {
  Extents<3> begin, end;

  /// Calls f(place) for every place of the range, among `extent` of them, in order.
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
/// The places of x that an output place looks at.
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
/// The output places that look at a place of x.
__device__ inline SpaceRange lookers_at(ConvolutionShape const& s, Index place) {
  auto const at = place_at(s.extent, place);
  SpaceRange range{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto const last = at[axis] + s.padding[axis], first = last - s.kernel[axis] + 1;
    range.begin[axis] = first > 0 ? (first + s.stride[axis] - 1) / s.stride[axis] : 0;
    range.end[axis] = min(s.result(axis), last / s.stride[axis] + 1);
  }
  return range;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
