// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/binary_operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream.
template <>
struct BinaryOperation<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar const> y, Vector<Scalar> z) {
    detail::for_vectorized<Scalar>(Rule::name, stream, x.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> firsts, seconds;
                                     access.load_as(x.data, firsts);
                                     access.load_as(y.data, seconds);
                                     for (int j = 0; j < access.size; ++j) firsts[j] = Rule{}(firsts[j], seconds[j]);
                                     access.put(firsts, z.data);
                                   });
  }

  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Vector<Scalar const> y, Vector<Scalar> dx, Write write) {
    detail::for_vectorized<Scalar>(Rule::name, stream, dz.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> gradients, seconds = {};
                                     access.load_as(dz.data, gradients);
                                     if (Rule::reads_second) access.load_as(y.data, seconds);
                                     for (int j = 0; j < access.size; ++j)
                                       gradients[j] = Rule{}(gradients[j], seconds[j]);
                                     access.put(gradients, dx.data, write);
                                   });
  }
};

}}}  // namespace lockstep::kernel
