// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_sequences.cuh>
#include <lockstep/kernel/sequence_scale.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions and shapes as on the host, queued on the stream. A thread takes a channel of a slot; the sum over a
/// sequence's tokens is shared out among several.
/// @determinism bitwise, run to run and, of one build, on GPUs of one architecture; gradients of factors differ from
/// the host's by rounding
template <>
struct SequenceScale<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, CudaSpace>;

  template <class T>
  static void run(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> x, Matrix<T const> factors,
                  Matrix<T> y, Write write) {
    using Number = Accumulate<T>;
    auto const width = y.extent[1];
    detail::for_elements("kernel::SequenceScale::run", stream, y.size(), [=] __device__(Index i) {
      auto const factor = static_cast<Number>(factors.data[layout.row_of(i / width) * width + i % width]);
      auto const here = detail::product(static_cast<Number>(x.data[i]), factor);
      y.data[i] = static_cast<T>(write == Write::add ? static_cast<Number>(y.data[i]) + here : here);
    });
  }

  template <class T>
  static void factors_backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> dy, Matrix<T const> x,
                               Matrix<T> dfactors, Write write) {
    using Number = Accumulate<T>;
    auto const width = dfactors.extent[1];
    detail::sum_sequences<Number>(
        "kernel::SequenceScale::factors_backward", stream, layout, width,
        [=] __device__(Index at) {
          return detail::product(static_cast<Number>(dy.data[at]), static_cast<Number>(x.data[at]));
        },
        [=] __device__(Index, Index to, Number sum) {
          dfactors.data[to] = static_cast<T>(write == Write::add ? static_cast<Number>(dfactors.data[to]) + sum : sum);
        });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
