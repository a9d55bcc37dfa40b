// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes c = beta * c + bias in each row; a null bias is skipped.
template <class Scalar>
void scale_and_add(memory::Stream<CudaSpace> stream, Accumulate<Scalar> beta, TensorView<Scalar, 2, CudaSpace> c,
                   Scalar const* bias) {
  for_elements("kernel::Gemm", stream, c.size(), [=] __device__(Index i) {
    auto sum = bias ? static_cast<Accumulate<Scalar>>(bias[i % c.extent[1]]) : Accumulate<Scalar>{0};
    if (beta != 0) sum += beta * static_cast<Accumulate<Scalar>>(c.data[i]);
    c.data[i] = static_cast<Scalar>(sum);
  });
}

}}}  // namespace lockstep::kernel::detail
