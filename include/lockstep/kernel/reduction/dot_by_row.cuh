// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/reduction/dot_by_row.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One warp processes one row.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void multiply_row_pairs(Index rows, Index width, Scalar const* a, Scalar const* b, Scalar* z) {
  using Sum = Accumulate<Scalar>;
  for (auto row = WarpTeam::first(); row < rows; row += WarpTeam::count()) {
    Sum sum = 0;
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      sum += static_cast<Sum>(a[row * width + c]) * static_cast<Sum>(b[row * width + c]);
    sum = WarpTeam::sum(sum);
    if (WarpTeam::member() == 0) z[row] = static_cast<Scalar>(sum);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct DotByRow<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> a, Matrix<Scalar const> b, Vector<Scalar> z) {
    detail::launch("kernel::DotByRow::forward", stream, a.extent[0] * detail::warp, detail::multiply_row_pairs<Scalar>,
                   a.extent[0], a.extent[1], a.data, b.data, z.data);
  }

  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Matrix<Scalar const> b, Matrix<Scalar> da, Write write) {
    detail::for_elements("kernel::DotByRow::backward", stream, b.size(), [=] __device__(Index i) {
      using Sum = Accumulate<Scalar>;
      auto const here = static_cast<Sum>(dz.data[i / b.extent[1]]) * static_cast<Sum>(b.data[i]);
      da.data[i] = static_cast<Scalar>(write == Write::overwrite ? here : static_cast<Sum>(da.data[i]) + here);
    });
  }
};

}}}  // namespace lockstep::kernel
