// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_sequences.cuh>
#include <lockstep/kernel/sequence_shift.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions and shapes as on the host, queued on the stream. A thread takes a channel of a slot; the sum over a
/// sequence's tokens is shared out among several.
/// @determinism bitwise, run to run and, of one build, on GPUs of one architecture; gradients of what was added differ
/// from the host's by rounding
template <>
struct SequenceShift<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, CudaSpace>;

  template <class T>
  static void run(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> x, Matrix<T const> by, Matrix<T> y) {
    using Number = Accumulate<T>;
    auto const width = y.extent[1];
    detail::for_elements("kernel::SequenceShift::run", stream, y.size(), [=] __device__(Index i) {
      auto const add = static_cast<Number>(by.data[layout.row_of(i / width) * width + i % width]);
      y.data[i] = static_cast<T>(static_cast<Number>(x.data[i]) + add);
    });
  }

  template <class T>
  static void backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> dy, Matrix<T> dby,
                       Write write) {
    using Number = Accumulate<T>;
    detail::sum_sequences<Number>(
        "kernel::SequenceShift::backward", stream, layout, dby.extent[1],
        [=] __device__(Index at) { return static_cast<Number>(dy.data[at]); },
        [=] __device__(Index, Index to, Number sum) {
          dby.data[to] = static_cast<T>(write == Write::add ? static_cast<Number>(dby.data[to]) + sum : sum);
        });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
