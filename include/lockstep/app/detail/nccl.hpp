// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/world.hpp>

#if defined(LOCKSTEP_NCCL)
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {
class NcclCommunicator;
}}}  // namespace lockstep::comm
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// NCCL's engine: an incomplete type, except where nvcc compiles after lockstep/cuda.cuh.
#if defined(LOCKSTEP_NCCL)
using Nccl = comm::NcclCommunicator;
#else
class Nccl;
#endif

template <class Communicator = Nccl>
inline constexpr bool built_with_nccl = requires {
  sizeof(Communicator);
};

/// Connects the ranks of a world with NCCL, this rank on the GPU `gpu`. NCCL rejects ranks that share a GPU unless
/// their host ids differ. If processes share a GPU, each process therefore sets its own NCCL_HOSTID.
template <class Communicator>
[[nodiscard]] Communicator connect_gpu(launch::World const& world, int gpu) {
  struct GpuLocation {
    char host[128] = {}, boot[40] = {}, gpu[32] = {};
    bool operator==(GpuLocation const& other) const noexcept {
      return std::strcmp(host, other.host) == 0 && std::strcmp(boot, other.boot) == 0 &&
             std::strcmp(gpu, other.gpu) == 0;
    }
  } mine;
  Communicator::pci_bus_id(gpu).copy(mine.gpu, sizeof mine.gpu - 1);
  ::gethostname(mine.host, sizeof mine.host - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id").read(mine.boot, 36);  // host names may not be unique
  auto host = Communicator::host_engine(world);
  std::vector<GpuLocation> all(static_cast<std::size_t>(world.size));
  host.all_gather(&mine, all.data(), sizeof mine);
  for (auto& location : all) location.host[127] = location.boot[39] = location.gpu[31] = '\0';
  bool shares_gpu = false;
  for (auto const& location : all) shares_gpu = shares_gpu || std::count(all.begin(), all.end(), location) > 1;
  if (shares_gpu && world.engine == launch::Engine::thread)
    throw ConfigError(
        "--engine nccl: there are more ranks than GPUs, but NCCL lets no two threads of a process share a GPU; use "
        "--nproc instead of --devices, or --engine process");
  if (shares_gpu) ::setenv("NCCL_HOSTID", (std::string(mine.host) + "-" + std::to_string(world.rank)).c_str(), 0);
  return Communicator(world, std::move(host), gpu);
}

}}}  // namespace lockstep::app::detail
