// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/recurrent/recurrent.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream: one thread for each channel of each
/// sequence.
template <>
struct Recurrent<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  using Pass = RecurrentPass<Scalar, CudaSpace>;  ///< arguments that the steps share

  /// Computes step t of all sequences that have one, as on the host.
  template <class Cell, class Scalar, class Out>
  static void forward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Scalar const> product,
                           Vector<Scalar const> bias, Matrix<Scalar> state, Matrix<Out> y);

  /// Computes the gradients of step t, as on the host.
  template <class Cell, class Scalar, class Out>
  static void backward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Out const> dy,
                            Matrix<Scalar const> before, Matrix<Scalar> dstate, Matrix<Scalar> dkept,
                            Matrix<Scalar> dproduct, Matrix<Scalar> dparts);

  /// Copies the number that is kept after the last token, as on the host.
  template <class Scalar, class Out>
  static void last_kept(Stream stream, Pass<Scalar> const& pass, Matrix<Out> last);

  /// Copies the state before each token, as on the host.
  template <class Scalar, class Out>
  static void states_before(Stream stream, Pass<Scalar> const& pass, Matrix<Out const> y, Matrix<Scalar> before);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/recurrent/recurrent.icuh>
#endif
