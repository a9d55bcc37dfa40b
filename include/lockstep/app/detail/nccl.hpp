// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

#if defined(LOCKSTEP_NCCL) && defined(__CUDA_ARCH_LIST__)
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <lockstep/comm/nccl_communicator.cuh>
#include <lockstep/core/error.hpp>
#endif

namespace lockstep::inline LOCKSTEP_ABI::app::detail {

#if defined(LOCKSTEP_NCCL) && defined(__CUDA_ARCH_LIST__)

inline constexpr bool built_with_nccl = true;

/// Joins the ranks of a world by NCCL, this one on the GPU `gpu`. `crowded`: there are more ranks on this host than
/// GPUs for them. NCCL refuses that unless they seem to be on hosts of their own, which a process can say of itself.
[[nodiscard]] inline comm::NcclCommunicator connect_gpu(launch::World const& world, int gpu, bool crowded) {
  if (crowded && world.engine == launch::Engine::thread)
    throw ConfigError(
        "--engine nccl: there are more ranks than GPUs, and NCCL lets no two threads of a process share one; use "
        "--nproc instead of --devices, or --engine process");
  if (crowded) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    ::setenv("NCCL_HOSTID", (std::string(host) + "-" + std::to_string(world.local_rank)).c_str(), 0);
  }
  return comm::NcclCommunicator(world, gpu);
}

#else

inline constexpr bool built_with_nccl = false;

#endif

}  // namespace lockstep::inline LOCKSTEP_ABI::app::detail
