// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/sum_sequences.cuh>
#include <lockstep/kernel/sequence/sequence_operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. One thread processes one channel of a slot.
/// Several threads share the sum over a sequence's tokens.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; gradients of the sequences'
/// vectors differ from the host's by rounding
template <>
struct SequenceOperation<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Rule, class T>
  static void run(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> x, Matrix<T const> by, Matrix<T> z,
                  Write write) {
    using Number = Accumulate<T>;
    auto const width = z.extent[1];
    detail::for_elements(Rule::name, stream, z.size(), [=] __device__(Index i) {
      auto const second = static_cast<Number>(by.data[layout.row_of(i / width) * width + i % width]);
      auto const here = Rule{}(static_cast<Number>(x.data[i]), second);
      z.data[i] =
          static_cast<T>(write == Write::add ? detail::rounded_sum(static_cast<Number>(z.data[i]), here) : here);
    });
  }

  template <class Rule, class T>
  static void backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<T const> dz, Matrix<T const> x,
                       Matrix<T> dby, Write write) {
    using Number = Accumulate<T>;
    detail::sum_sequences<Number>(
        Rule::name, stream, layout, dby.extent[1],
        [=] __device__(Index at) {
          auto const second = Rule::reads_second ? static_cast<Number>(x.data[at]) : Number{0};
          return Rule{}(static_cast<Number>(dz.data[at]), second);
        },
        [=] __device__(Index, Index to, Number sum) {
          dby.data[to] = static_cast<T>(write == Write::add ? static_cast<Number>(dby.data[to]) + sum : sum);
        });
  }
};

}}}  // namespace lockstep::kernel
