// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/rotary.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. For 16-bit activations, the table is float.
/// One thread processes one angle of a token's head.
template <>
struct Rotary<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void fill(Stream stream, double base, Index first, Matrix<Scalar> table) {
    auto const width = table.extent[1], half = width / 2;
    detail::for_elements("kernel::Rotary::fill", stream, table.extent[0] * half, [=] __device__(Index i) {
      auto const position = i / half, j = i % half;
      auto const angle =
          static_cast<double>(first + position) * pow(base, -2 * static_cast<double>(j) / static_cast<double>(width));
      table.data[position * width + j] = static_cast<Scalar>(cos(angle));
      table.data[position * width + half + j] = static_cast<Scalar>(sin(angle));
    });
  }

  template <class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> const& layout, Matrix<Accumulate<Scalar> const> table,
                  Rotation rotation, Matrix<Scalar> x) {
    using Sum = Accumulate<Scalar>;
    auto const width = table.extent[1], half = width / 2, all = x.extent[1], angles = all / 2;
    detail::for_elements("kernel::Rotary::run", stream, layout.slots * angles, [=] __device__(Index i) {
      auto const slot = i / angles, head = i % angles / half, j = i % half;
      auto const* const cosines = table.data + (slot - layout.start(layout.row_of(slot))) * width;
      auto* const left = x.data + slot * all + head * width + j;
      auto const a = static_cast<Sum>(left[0]), b = static_cast<Sum>(left[half]), cosine = cosines[j],
                 sine = rotation == Rotation::inverse ? -cosines[half + j] : cosines[half + j];
      left[0] = static_cast<Scalar>(a * cosine - b * sine);
      left[half] = static_cast<Scalar>(b * cosine + a * sine);
    });
  }
};

}}}  // namespace lockstep::kernel
