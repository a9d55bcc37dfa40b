// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's, queued on the stream.
template <>
struct Convert<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes to[i] = x[i].
  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to);

  /// Computes to[i] = x[i], or adds x[i] to to[i].
  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to, Write write);

  /// Computes the conversion of factor * x[i] like `run`. The factor is in device memory, and is read when the work
  /// runs.
  template <class Scalar, class Other>
  static void run_scaled(Stream stream, Vector<Other const> x, Other const* factor, Vector<Scalar> to, Write write);

 private:
  static constexpr char const* name = "kernel::Convert";

  /// The narrower type, whose adjacent elements fill a thread's access; those of the wider type take several.
  template <class Scalar, class Other>
  using Narrower = std::conditional_t<sizeof(Scalar) <= sizeof(Other), Scalar, Other>;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/copy/convert.icuh>
#endif
