// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_sequences.cuh>
#include <lockstep/kernel/pooling/detail/spread_sequences.cuh>
#include <lockstep/kernel/pooling/pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. Several threads share the tokens of a mean.
/// A warp writes the gradients of adjacent slots, 16 bytes per lane.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; a mean differs from the host's by
/// rounding
template <>
struct Pooling<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void mean(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x, Matrix<Scalar> y) {
    using Sum = Accumulate<Scalar>;
    auto const width = y.extent[1];
    detail::sum_sequences<Sum>(
        "kernel::Pooling::mean", stream, layout, width,
        [=] __device__(Index at) { return static_cast<Sum>(x.data[at]); },
        [=] __device__(Index row, Index to, Sum sum) {
          auto const tokens = layout.tokens(row);
          y.data[to] = static_cast<Scalar>(tokens > 0 ? sum / static_cast<Sum>(tokens) : sum);
        });
  }

  template <class Scalar>
  static void mean_backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> dy, Matrix<Scalar> dx,
                            Write write) {
    detail::spread_sequences(
        "kernel::Pooling::mean_backward", stream, layout, dy.extent[1],
        [=] __device__(Index row, Index slot) {
          auto const tokens = layout.tokens(row);
          return slot - layout.start(row) < tokens ? tokens : Index{0};
        },
        dy.data, dx.data, write);
  }

  template <class Scalar>
  static void token(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which, Matrix<Scalar const> x,
                    Matrix<Scalar> y) {
    auto const width = y.extent[1];
    detail::for_elements("kernel::Pooling::token", stream, y.size(), [=] __device__(Index i) {
      auto const row = i / width;
      y.data[i] =
          layout.tokens(row) > 0 ? x.data[detail::pooled_slot(layout, row, which) * width + i % width] : Scalar{0};
    });
  }

  template <class Scalar>
  static void token_backward(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which,
                             Matrix<Scalar const> dy, Matrix<Scalar> dx, Write write) {
    detail::spread_sequences(
        "kernel::Pooling::token_backward", stream, layout, dy.extent[1],
        [=] __device__(Index row, Index slot) {
          bool const pooled = layout.tokens(row) > 0 && slot == detail::pooled_slot(layout, row, which);
          return Index{pooled};
        },
        dy.data, dx.data, write);
  }
};

}}}  // namespace lockstep::kernel
