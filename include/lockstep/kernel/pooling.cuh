// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_sequences.cuh>
#include <lockstep/kernel/pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. One thread processes one channel of a slot.
/// Several threads share the tokens of a mean.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; a mean differs from the host's by
/// rounding
template <>
struct Pooling<CudaSpace> : detail::OfSpace<CudaSpace> {
  template <class T>
  static void mean(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> x, Matrix<T> y) {
    using Sum = Accumulate<T>;
    auto const width = y.extent[1];
    detail::sum_sequences<Sum>(
        "kernel::Pooling::mean", stream, layout, width,
        [=] __device__(Index at) { return static_cast<Sum>(x.data[at]); },
        [=] __device__(Index row, Index to, Sum sum) {
          auto const tokens = layout.tokens(row);
          y.data[to] = static_cast<T>(tokens > 0 ? sum / static_cast<Sum>(tokens) : sum);
        });
  }

  template <class T>
  static void mean_backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> dy, Matrix<T> dx,
                            Write write) {
    using Sum = Accumulate<T>;
    auto const width = dy.extent[1];
    detail::for_elements("kernel::Pooling::mean_backward", stream, dx.size(), [=] __device__(Index i) {
      auto const slot = i / width, row = layout.row_of(slot), tokens = layout.tokens(row);
      if (slot - layout.start(row) < tokens) {
        auto const here = static_cast<Sum>(dy.data[row * width + i % width]) / static_cast<Sum>(tokens);
        dx.data[i] = static_cast<T>(write == Write::add ? static_cast<Sum>(dx.data[i]) + here : here);
      } else if (write == Write::overwrite) {
        dx.data[i] = T{0};
      }
    });
  }

  template <class T>
  static void token(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which, Matrix<T const> x,
                    Matrix<T> y) {
    auto const width = y.extent[1];
    detail::for_elements("kernel::Pooling::token", stream, y.size(), [=] __device__(Index i) {
      auto const row = i / width;
      y.data[i] = layout.tokens(row) > 0 ? x.data[detail::pooled_slot(layout, row, which) * width + i % width] : T{0};
    });
  }

  template <class T>
  static void token_backward(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which, Matrix<T const> dy,
                             Matrix<T> dx, Write write) {
    using Sum = Accumulate<T>;
    auto const width = dy.extent[1];
    detail::for_elements("kernel::Pooling::token_backward", stream, dx.size(), [=] __device__(Index i) {
      auto const slot = i / width, row = layout.row_of(slot);
      bool const pooled = layout.tokens(row) > 0 && slot == detail::pooled_slot(layout, row, which);
      auto const here = pooled ? dy.data[row * width + i % width] : T{0};
      if (write == Write::overwrite)
        dx.data[i] = here;
      else if (pooled)
        dx.data[i] = static_cast<T>(static_cast<Sum>(dx.data[i]) + static_cast<Sum>(here));
    });
  }
};

}}}  // namespace lockstep::kernel
