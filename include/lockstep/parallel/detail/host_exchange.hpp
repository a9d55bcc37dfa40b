// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Runs collectives of a host engine on an arena in device memory: parts are copied to the host, and results back, each
/// as soon as it can be.
template <class Space>
class HostExchange {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

}}}  // namespace lockstep::parallel::detail
