// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

#if defined(LOCKSTEP_NCCL) && defined(__CUDA_ARCH_LIST__)
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/nccl_communicator.cuh>
#include <lockstep/core/error.hpp>
#endif

namespace lockstep::inline LOCKSTEP_ABI::app::detail {

#if defined(LOCKSTEP_NCCL) && defined(__CUDA_ARCH_LIST__)

inline constexpr bool built_with_nccl = true;

/// Joins the ranks of a world by NCCL, this one on the GPU `gpu`. NCCL refuses ranks that share one, unless they seem
/// to be on hosts of their own, which a process can say of itself.
[[nodiscard]] inline comm::NcclCommunicator connect_gpu(launch::World const& world, int gpu) {
  struct Seat {
    char host[128] = {}, bus[32] = {};
    bool operator==(Seat const& other) const noexcept {
      return std::strcmp(host, other.host) == 0 && std::strcmp(bus, other.bus) == 0;
    }
  } mine;
  memory::check_cuda(cudaSetDevice(gpu), "cudaSetDevice");
  memory::check_cuda(cudaDeviceGetPCIBusId(mine.bus, sizeof mine.bus, gpu), "cudaDeviceGetPCIBusId");
  ::gethostname(mine.host, sizeof mine.host - 1);
  auto host = comm::NcclCommunicator::host_engine(world);
  std::vector<Seat> all(static_cast<std::size_t>(world.size));
  host.all_gather(&mine, all.data(), sizeof mine);
  bool crowded = false;
  for (auto const& seat : all) crowded = crowded || std::count(all.begin(), all.end(), seat) > 1;
  if (crowded && world.engine == launch::Engine::thread)
    throw ConfigError(
        "--engine nccl: there are more ranks than GPUs, and NCCL lets no two threads of a process share one; use "
        "--nproc instead of --devices, or --engine process");
  if (crowded) ::setenv("NCCL_HOSTID", (std::string(mine.host) + "-" + std::to_string(world.rank)).c_str(), 0);
  return comm::NcclCommunicator(world, std::move(host));
}

#else

inline constexpr bool built_with_nccl = false;

#endif

}  // namespace lockstep::inline LOCKSTEP_ABI::app::detail
