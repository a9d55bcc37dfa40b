// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Ranges along the three axes of space.
struct SpatialRange {
  Extents<3> begin, end;

  /// Calls f(position) for each position of the range within `extent`, in order.
  template <class Function>
  __device__ void for_positions(Extents<3> const& extent, Function const& f) const {
    for (Index d = begin[0]; d < end[0]; ++d)
      for (Index h = begin[1]; h < end[1]; ++h)
        for (Index w = begin[2]; w < end[2]; ++w) f((d * extent[1] + h) * extent[2] + w);
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

__device__ inline Extents<3> position_at(Extents<3> const& extent, Index position) {
  return {position / (extent[1] * extent[2]), position / extent[2] % extent[1], position % extent[2]};
}
/// Returns the output positions whose kernel reaches over a position of x: all that read it, and with dilation others,
/// too.
__device__ inline SpatialRange output_range(ConvolutionShape const& s, Index position) {
  auto const at = position_at(s.extent, position);
  SpatialRange range{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    auto const last = at[axis] + s.padding[axis], first = last - s.reach(axis) + 1;
    range.begin[axis] = first > 0 ? (first + s.stride[axis] - 1) / s.stride[axis] : 0;
    range.end[axis] = min(s.result(axis), last / s.stride[axis] + 1);
  }
  return range;
}
/// Returns the tap along an axis at this distance from the first (not beyond the last), or -1 for none.
__device__ inline Index tap_at(ConvolutionShape const& s, std::size_t axis, Index distance) {
  if (s.dilation[axis] == 1) return distance;
  return distance % s.dilation[axis] == 0 ? distance / s.dilation[axis] : -1;
}
/// Calls f(output position, tap) for each output position that reads a position of x, in order.
template <class Function>
__device__ void for_outputs_reading(ConvolutionShape const& s, Index position, Function const& f) {
  auto const here = position_at(s.extent, position);
  auto const result = s.result();
  auto const outputs = output_range(s, position);
  for (auto d = outputs.begin[0]; d < outputs.end[0]; ++d)
    for (auto h = outputs.begin[1]; h < outputs.end[1]; ++h)
      for (auto w = outputs.begin[2]; w < outputs.end[2]; ++w) {
        auto const i = tap_at(s, 0, here[0] - d * s.stride[0] + s.padding[0]),
                   j = tap_at(s, 1, here[1] - h * s.stride[1] + s.padding[1]),
                   k = tap_at(s, 2, here[2] - w * s.stride[2] + s.padding[2]);
        if (i >= 0 && j >= 0 && k >= 0) f((d * result[1] + h) * result[2] + w, (i * s.kernel[1] + j) * s.kernel[2] + k);
      }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
