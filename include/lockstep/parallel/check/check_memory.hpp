// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/free_memory.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {
namespace detail {

/// Compares the memory of a session's arenas, which only depends on the model and the optimizer, with free memory.
class MemoryCheck {
 public:
  /// Memory that one process of a session takes at least, in one place.
  struct Need {
    double bytes = 0;
    int replicas = 0;
    std::string contents;  ///< "values, gradients and 2 optimizer moments"
  };

  MemoryCheck(Index parameters, int ranks_here, bool can_shard, int moments)
      : parameters_(parameters), ranks_here_(ranks_here), can_shard_(can_shard), moments_(moments) {}

  /// @param rank_threads the ranks of this process
  /// @throws ConfigError if the host's memory does not suffice
  void host(Need const& need, FreeMemory const& memory, int rank_threads) const;
  /// @throws ConfigError if the GPU's memory does not suffice
  void gpu(Need const& need, FreeMemory const& memory, int number) const;

 private:
  [[noreturn]] void refuse(Need const& need, std::string const& who, std::string const& where, std::string const& has,
                           std::string const& remedy) const;
  [[nodiscard]] std::string smaller_model() const;
  [[nodiscard]] std::string remedies(FreeMemory const& memory, bool too_large) const;

  Index parameters_;
  int ranks_here_;
  bool can_shard_;
  int moments_;
};

/// Address space that OpenBLAS takes for each thread that multiplies. OpenBLAS tries forever if it is refused.
#if defined(LOCKSTEP_BLAS)
inline constexpr double blas_buffer = 128 << 20;
#else
inline constexpr double blas_buffer = 0;
#endif

}  // namespace detail

/// Checks that the arenas of a trainer fit into memory, before anything is allocated. Counts values, gradients, 16-bit
/// shadows, optimizer moments and initial values; activations and batches come on top. With GPUs, the calling thread
/// enters the first shard's GPU.
/// @throws ConfigError that names what is needed, what is free, and remedies; CudaError if a GPU cannot be used
template <class Replica, class Optimizer, class Policy>
[[gnu::cold]] void check_memory(Policy& policy, nn::ParameterLayout const& layout) {
  using Space = typename Replica::Space;
  if (policy.shards() < 1) return;  // the session refuses it
  auto const floats = sizeof(float) * static_cast<double>(layout.size());
  int const devices = policy.shards() / shards_of_device(policy), ranks = policy.all_shards() / policy.shards();
  constexpr int moments = Optimizer::states;
  double moment_bytes = moments * floats;
  auto const settings = settings_of(policy);
  if (settings.shard_optimizer) moment_bytes /= ranks;
  bool const can_shard = settings.can_shard_optimizer && moments > 0 && ranks > 1 && !settings.shard_optimizer;
  int ranks_here = ranks, rank_threads = ranks;
  if (ranks > 1)
    if (auto const place = launch::detect(); place.size > 1) {
      ranks_here = place.local_size;
      rank_threads = 1;
    }
  detail::MemoryCheck const check(layout.parameters(), ranks_here, can_shard, moments);

  std::string contents = "values, gradients";
  if (Replica::bytes_per_element > 2 * sizeof(float)) contents += ", 16-bit values";
  if (moments > 0)
    contents += ", " + std::to_string(moments) + (moments > 1 ? " optimizer moments" : " optimizer moment");
  auto const replica = static_cast<double>(Replica::bytes_per_element) * static_cast<double>(layout.size());
  auto const start = settings.can_shard_optimizer ? 2 * floats : floats;  // ranks copy the initial values to send them

  if (auto const memory = FreeMemory::of_host()) {
    detail::MemoryCheck::Need host{start, 1, "initial values"};
    if (Space::host_accessible) {
      bool const has_buffers = detail::blas_buffer > 0 && memory->limit == FreeMemory::Limit::address_space;
      auto const buffers = has_buffers ? detail::blas_buffer * devices * policy.threads_each() : 0;
      host = {devices * replica + moment_bytes + start + buffers, devices,
              contents + (has_buffers ? ", initial values and buffers of OpenBLAS" : " and initial values")};
    }
    check.host(host, *memory, rank_threads);
  }
  if constexpr (!Space::host_accessible) {
    std::vector<std::pair<int, detail::MemoryCheck::Need>> gpus;
    for (int device = 0; device < devices; ++device) {
      auto const gpu = policy.place(device).gpu;
      if constexpr (requires { policy.communicator.gpu(); })
        if (gpu != policy.communicator.gpu()) return;  // the session refuses it
      auto found = std::find_if(gpus.begin(), gpus.end(), [gpu](auto const& each) { return each.first == gpu; });
      if (found == gpus.end()) found = gpus.insert(found, {gpu, {0, 0, contents}});
      found->second.bytes += replica + (device == 0 ? moment_bytes : 0);
      ++found->second.replicas;
    }
    for (auto i = gpus.size(); i-- > 0;) {  // enters the first device's GPU last
      auto const& [gpu, need] = gpus[i];
      check.gpu(need, detail::Device<Space>::free_memory(gpu), gpu);
    }
  }
}

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/check/check_memory.ipp>
#endif
