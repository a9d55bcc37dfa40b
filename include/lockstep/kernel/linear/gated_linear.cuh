// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/linear/gated_linear.hpp>
#include <lockstep/kernel/linear/linear.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. cuBLASLt computes the matrix product.
/// @determinism as for Gemm
template <>
struct GatedLinear<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar const> gate, Matrix<Scalar> slope, Matrix<Scalar> y) {
    expect<ShapeError>(gate.extent == y.extent && (!slope.data || slope.extent == y.extent), [&] {
      return "GatedLinear: the output is " + to_string(y.extent) + ", its gates are " + to_string(gate.extent) +
             " and their slopes " + to_string(slope.extent) + "; the three must have equal shapes";
    });
    Linear<CudaSpace>::forward<Scalar>(stream, x, weight, bias, y);
    auto const name = "kernel::GatedLinear::forward";
    detail::for_vectorized<Scalar>(name, stream, y.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
      detail::AccessNumbers<Scalar> values;
      access.load_as(y.data, values);
      if (slope.data) access.multiply(slope.data, values);
      access.load_as(gate.data, values);
      access.multiply(y.data, values);
    });
  }

  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar> gate, Vector<Scalar> slope) {
    auto const name = "kernel::GatedLinear::backward";
    detail::for_vectorized<Scalar>(name, stream, dy.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
      detail::AccessNumbers<Scalar> gradients;
      access.load_as(dy.data, gradients);
      access.multiply(gate.data, gradients);
      access.multiply(slope.data, gradients);
    });
  }
};

}}}  // namespace lockstep::kernel
