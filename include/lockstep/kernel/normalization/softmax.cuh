// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/normalization/softmax.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One warp processes one row.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void softmax_rows(Index rows, Index width, Scalar const* x, Scalar* y) {
  using Sum = Accumulate<Scalar>;
  for (auto row = WarpTeam::first(); row < rows; row += WarpTeam::count()) {
    auto const* const from = x + row * width;
    Sum maximum = -std::numeric_limits<Sum>::infinity(), total = 0;
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size) {
      auto const here = static_cast<Sum>(from[c]);
      maximum = here > maximum || here != here ? here : maximum;
    }
    maximum = WarpTeam::largest(maximum);
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      total += std::exp(static_cast<Sum>(from[c]) - maximum);
    Sum const share = 1 / WarpTeam::sum(total);
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      y[row * width + c] = static_cast<Scalar>(std::exp(static_cast<Sum>(from[c]) - maximum) * share);
  }
}

template <class Scalar>
LOCKSTEP_CUDA_KERNEL void differentiate_softmax(Index rows, Index width, Scalar const* dy, Scalar const* y, Scalar* dx,
                                                Write write) {
  using Sum = Accumulate<Scalar>;
  for (auto row = WarpTeam::first(); row < rows; row += WarpTeam::count()) {
    Sum mean = 0;
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      mean += static_cast<Sum>(y[row * width + c]) * static_cast<Sum>(dy[row * width + c]);
    mean = WarpTeam::sum(mean);
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size) {
      auto const at = row * width + c;
      Sum const here = static_cast<Sum>(y[at]) * (static_cast<Sum>(dy[at]) - mean);
      dx[at] = static_cast<Scalar>(write == Write::overwrite ? here : static_cast<Sum>(dx[at]) + here);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct Softmax<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar> y) {
    detail::launch("kernel::Softmax::forward", stream, x.extent[0] * detail::warp, detail::softmax_rows<Scalar>,
                   x.extent[0], x.extent[1], x.data, y.data);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> y, Matrix<Scalar> dx, Write write) {
    detail::launch("kernel::Softmax::backward", stream, y.extent[0] * detail::warp,
                   detail::differentiate_softmax<Scalar>, y.extent[0], y.extent[1], dy.data, y.data, dx.data, write);
  }
};

}}}  // namespace lockstep::kernel
