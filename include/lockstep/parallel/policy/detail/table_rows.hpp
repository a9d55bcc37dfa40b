// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums the touched rows of large tables' gradients, which are dense in device memory, over ranks of a host engine.
template <class Space>
class HostStagedRows {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// Sums them with a communicator for device memory.
template <class Space>
class DeviceRows {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

}}}  // namespace lockstep::parallel::detail
