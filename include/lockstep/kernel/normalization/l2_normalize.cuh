// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/normalization/l2_normalize.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One warp processes one row.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void l2_normalize_rows(Index rows, Index width, Scalar const* x, Accumulate<Scalar> epsilon,
                                            Accumulate<Scalar>* reciprocals, Scalar* y) {
  using Sum = Accumulate<Scalar>;
  for (auto row = WarpTeam::first(); row < rows; row += WarpTeam::count()) {
    Sum squares = 0;
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size) {
      auto const at = static_cast<Sum>(x[row * width + c]);
      squares += at * at;
    }
    Sum const length = std::sqrt(WarpTeam::sum(squares));
    Sum const reciprocal = 1 / (length > epsilon ? length : epsilon);
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      y[row * width + c] = static_cast<Scalar>(static_cast<Sum>(x[row * width + c]) * reciprocal);
    if (reciprocals && WarpTeam::member() == 0) reciprocals[row] = reciprocal;
  }
}

template <class Scalar>
LOCKSTEP_CUDA_KERNEL void differentiate_l2_rows(Index rows, Index width, Scalar const* dy, Scalar const* x,
                                                Accumulate<Scalar> epsilon, Accumulate<Scalar> const* reciprocals,
                                                Scalar* dx, Write write) {
  using Sum = Accumulate<Scalar>;
  for (auto row = WarpTeam::first(); row < rows; row += WarpTeam::count()) {
    Sum dot = 0;
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size)
      dot += static_cast<Sum>(x[row * width + c]) * static_cast<Sum>(dy[row * width + c]);
    Sum const reciprocal = reciprocals[row];
    Sum const slope = L2Normalize<HostSpace>::projection(WarpTeam::sum(dot), reciprocal, epsilon);
    for (auto c = WarpTeam::member(); c < width; c += WarpTeam::size) {
      auto const at = row * width + c;
      Sum const here = reciprocal * (static_cast<Sum>(dy[at]) - static_cast<Sum>(x[at]) * slope);
      dx[at] = static_cast<Scalar>(write == Write::overwrite ? here : static_cast<Sum>(dx[at]) + here);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct L2Normalize<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Accumulate<Scalar> epsilon,
                      Vector<Accumulate<Scalar>> reciprocals, Matrix<Scalar> y) {
    detail::launch("kernel::L2Normalize::forward", stream, x.extent[0] * detail::warp,
                   detail::l2_normalize_rows<Scalar>, x.extent[0], x.extent[1], x.data, epsilon, reciprocals.data,
                   y.data);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Accumulate<Scalar> epsilon,
                       Vector<Accumulate<Scalar> const> reciprocals, Matrix<Scalar> dx, Write write) {
    detail::launch("kernel::L2Normalize::backward", stream, x.extent[0] * detail::warp,
                   detail::differentiate_l2_rows<Scalar>, x.extent[0], x.extent[1], dy.data, x.data, epsilon,
                   reciprocals.data, dx.data, write);
  }
};

}}}  // namespace lockstep::kernel
