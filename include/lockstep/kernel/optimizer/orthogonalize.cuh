// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/orthogonalize.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// A stream's sum of the squares of a matrix.
struct OrthogonalizeMemory {
  memory::Buffer<double, CudaSpace> sum{1, memory::CudaResource{}};
};

}  // namespace detail

/// CUDA version of the primary template. The norm is not copied to the host.
/// @determinism bitwise run to run, on one kind of GPU and version of cuBLASLt
template <>
struct Orthogonalize<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Runs the iteration as on the host, by cuBLASLt, and computes symmetric products whole.
  template <class Scalar>
  [[nodiscard]] static Scalar const* run(Stream stream, NewtonSchulz const& by, Matrix<Scalar> x, Scalar* work);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/optimizer/orthogonalize.icuh>
#endif
