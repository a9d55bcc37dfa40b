// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/detail/check_relative_bias.hpp>
#include <lockstep/kernel/attention/relative_bias.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and order of sums, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <>
struct RelativeBias<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes the bias of each distance. The table has the type of the computation: float for 16-bit Scalar.
  template <class Scalar>
  static void forward(Stream stream, RelativeBuckets const& buckets, Index first,
                      Matrix<Accumulate<Scalar> const> table, Matrix<Scalar> bias);

  /// One thread computes one element of the table, from the distances of its bucket.
  template <class Scalar>
  static void backward(Stream stream, RelativeBuckets const& buckets, Index first, Matrix<Scalar const> dbias,
                       Matrix<Accumulate<Scalar>> dtable, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/relative_bias.icuh>
#endif
