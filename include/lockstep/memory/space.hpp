// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Ordinary memory of this process.
struct HostSpace {
  static constexpr bool host_accessible = true;  ///< the CPU may read and write it
  static constexpr char name[] = "host";         ///< as in messages
};

/// Memory of a CUDA device. The tag is plain C++; code that uses the memory needs `lockstep/cuda.cuh` and nvcc.
struct CudaSpace {
  static constexpr bool host_accessible = false;  ///< only a device may read and write it
  static constexpr char name[] = "cuda";          ///< as in messages
};

}}  // namespace lockstep
