// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
template <>
struct Elementwise<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = rule(x).
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Rule rule = {});

  /// Computes y = rule(x) and slope = its derivative, for a rule that has `at`.
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Vector<Scalar> slope, Rule rule = {});

  /// Computes dx = rule.backward(dy, kept), or adds it to dx. `kept` is y, or the slope for a rule that has `at`.
  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar const> kept, Vector<Scalar> dx,
                       Write write, Rule rule = {});
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/elementwise/elementwise.icuh>
#endif
