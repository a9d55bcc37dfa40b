// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Affine map of each row whose outputs are multiplied by gates.
template <class Space>
struct GatedLinear : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct GatedLinear<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes h = x weight^T + bias, then y = gate * h and slope *= h while h is in cache. If `slope` holds the gate's
  /// slope with respect to its input, it becomes y's slope with respect to that input. Skips a null slope.
  /// @shape x [rows, inputs]   @shape weight [outputs, inputs]   @shape bias [outputs], or null for none
  /// @shape gate, slope, y [rows, outputs]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar const> gate, Matrix<Scalar> slope, Matrix<Scalar> y);

  /// Computes gate *= dy and slope *= dy, which are then the gradients of h and of the gates' input.
  /// @shape dy, gate, slope [n]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar> gate, Vector<Scalar> slope);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/linear/gated_linear.ipp>
#endif
