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
  template <class Rule, class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x, Matrix<Scalar const> by,
                  Matrix<Scalar> z, Write write) {
    using Number = Accumulate<Scalar>;
    auto const width = z.extent[1];
    detail::for_elements(Rule::name, stream, z.size(), [=] __device__(Index i) {
      auto const second = static_cast<Number>(by.data[layout.row_of(i / width) * width + i % width]);
      auto const here = Rule{}(static_cast<Number>(x.data[i]), second);
      z.data[i] =
          static_cast<Scalar>(write == Write::add ? detail::rounded_sum(static_cast<Number>(z.data[i]), here) : here);
    });
  }

  template <class Rule, class Scalar>
  static void backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> dz, Matrix<Scalar const> x,
                       Matrix<Scalar> dby, Write write) {
    using Number = Accumulate<Scalar>;
    detail::sum_sequences<Number>(
        Rule::name, stream, layout, dby.extent[1],
        [=] __device__(Index at) {
          auto const second = Rule::reads_second ? static_cast<Number>(x.data[at]) : Number{0};
          return Rule{}(static_cast<Number>(dz.data[at]), second);
        },
        [=] __device__(Index, Index to, Number sum) {
          dby.data[to] = static_cast<Scalar>(write == Write::add ? static_cast<Number>(dby.data[to]) + sum : sum);
        });
  }
};

}}}  // namespace lockstep::kernel
