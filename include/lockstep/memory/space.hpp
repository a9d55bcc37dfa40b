// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Ordinary memory of this process.
struct HostSpace {
  static constexpr bool host_accessible = true;
  static constexpr char name[] = "host";
};

/// Memory of a CUDA device. The tag is plain C++; code that uses the memory needs `lockstep/cuda.cuh` and nvcc.
struct CudaSpace {
  static constexpr bool host_accessible = false;
  static constexpr char name[] = "cuda";
};

}}  // namespace lockstep
