// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/sequence/arange.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version of the primary template.
template <>
struct Arange<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, queued on the stream.
  static void fill(Stream stream, std::int32_t first, Vector<std::int32_t> to);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/sequence/arange.icuh>
#endif
