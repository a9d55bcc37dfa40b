// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/parallel/check/check_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Address space that OpenBLAS takes for each thread that multiplies. OpenBLAS tries forever if it is refused.
#if defined(LOCKSTEP_BLAS)
inline constexpr double blas_buffer = 128 << 20;
#else
inline constexpr double blas_buffer = 0;
#endif

LOCKSTEP_COLD_INLINE void MemoryCheck::host(Need const& need, FreeMemory const& memory, int rank_threads) const {
  bool const per_process = memory.limit == FreeMemory::Limit::address_space;
  auto const ranks = per_process ? rank_threads : ranks_here_;
  if (need.bytes <= static_cast<double>(memory.free_bytes)) {
    auto all = need;
    all.bytes *= ranks;
    if (all.bytes > static_cast<double>(memory.total_bytes))
      refuse(all, std::to_string(ranks) + " ranks on this host with ", "host memory",
             "only " + memory_size(static_cast<double>(memory.total_bytes)) + " exist", remedies(memory, true));
    return;
  }
  bool const too_large = need.bytes > static_cast<double>(memory.total_bytes);
  refuse(need, "", "host memory", memory.text(), remedies(memory, too_large));
}

LOCKSTEP_COLD_INLINE void MemoryCheck::gpu(Need const& need, FreeMemory const& memory, int number) const {
  if (need.bytes <= static_cast<double>(memory.free_bytes)) return;
  auto remedy = smaller_model();
  if (need.replicas > 1) remedy = "use one GPU for each replica, or " + remedy;
  if (need.bytes <= static_cast<double>(memory.total_bytes))
    remedy =
        "end other processes that use this GPU, which nvidia-smi lists, choose another GPU (--gpu-ids), or " + remedy;
  refuse(need, "", "memory of GPU " + std::to_string(number), memory.text(), remedy);
}

LOCKSTEP_COLD_INLINE void MemoryCheck::refuse(Need const& need, std::string const& who, std::string const& where,
                                              std::string const& has, std::string const& remedy) const {
  auto const replicas = need.replicas > 1 ? std::to_string(need.replicas) + " replicas of " : std::string();
  throw ConfigError("Trainer: " + who + replicas + std::to_string(parameters_) + " parameters need at least " +
                    memory_size(need.bytes) + " of " + where + " before the first batch, for " + need.contents +
                    ", but " + has + "; " + remedy);
}

LOCKSTEP_COLD_INLINE std::string MemoryCheck::smaller_model() const {
  return moments_ > 0 ? "use a smaller model or an optimizer with fewer moments" : "use a smaller model";
}

LOCKSTEP_COLD_INLINE std::string MemoryCheck::remedies(FreeMemory const& memory, bool too_large) const {
  auto remedy = smaller_model();
  if (can_shard_) remedy += ", or shard the optimizer's moments over the ranks (--shard-optimizer)";
  if (memory.limit == FreeMemory::Limit::address_space) return "raise the limit (ulimit -v), or " + remedy;
  if (memory.limit == FreeMemory::Limit::control_group)
    return "raise the memory limit of this container or job, or " + remedy;
  return too_large ? remedy : "end other processes, or " + remedy;
}

LOCKSTEP_COLD_INLINE MemoryNeeds::MemoryNeeds(Sizes const& sizes, PolicySettings const& settings)
    : sizes_(sizes),
      ranks_here_(sizes.ranks),
      rank_threads_(sizes.ranks),
      can_shard_(settings.can_shard_optimizer && sizes.moments > 0 && sizes.ranks > 1 && !settings.shard_optimizer) {
  auto const elements = static_cast<double>(sizes.elements), floats = sizeof(float) * elements;
  replica_bytes_ = static_cast<double>(sizes.bytes_per_element) * elements;
  moment_bytes_ = sizes.moments * (settings.shard_optimizer ? floats / sizes.ranks
                                                            : sizeof(float) * static_cast<double>(sizes.learned));
  start_bytes_ = settings.can_shard_optimizer ? 2 * floats : floats;  // ranks copy the initial values to send them
  if (sizes.bytes_per_element > 2 * sizeof(float)) contents_ += ", 16-bit values";
  if (sizes.moments > 0)
    contents_ +=
        ", " + std::to_string(sizes.moments) + (sizes.moments > 1 ? " optimizer moments" : " optimizer moment");
}

LOCKSTEP_COLD_INLINE void MemoryNeeds::find_ranks_of_host() {
  auto const place = launch::detect();
  if (place.size <= 1) return;
  ranks_here_ = place.local_size;
  rank_threads_ = 1;
}

LOCKSTEP_COLD_INLINE void MemoryNeeds::check_host(int threads) const {
  auto const memory = FreeMemory::of_host();
  if (!memory) return;
  MemoryCheck::Need need{start_bytes_, 1, "initial values"};
  if (threads > 0) {
    bool const has_buffers = blas_buffer > 0 && memory->limit == FreeMemory::Limit::address_space;
    auto const buffers = has_buffers ? blas_buffer * sizes_.devices * threads : 0;
    need = {sizes_.devices * replica_bytes_ + moment_bytes_ + start_bytes_ + buffers, sizes_.devices,
            contents_ + (has_buffers ? ", initial values and buffers of OpenBLAS" : " and initial values")};
  }
  check().host(need, *memory, rank_threads_);
}

LOCKSTEP_COLD_INLINE void MemoryNeeds::check_gpus(std::vector<int> const& of_devices,
                                                  FreeMemory (*free_memory)(int gpu)) const {
  std::vector<std::pair<int, MemoryCheck::Need>> needs;
  for (std::size_t device = 0; device < of_devices.size(); ++device) {
    auto const gpu = of_devices[device];
    auto found = std::find_if(needs.begin(), needs.end(), [gpu](auto const& each) { return each.first == gpu; });
    if (found == needs.end()) found = needs.insert(found, {gpu, {0, 0, contents_}});
    found->second.bytes += replica_bytes_ + (device == 0 ? moment_bytes_ : 0);
    ++found->second.replicas;
  }
  for (auto i = needs.size(); i-- > 0;) {  // enters the first device's GPU last
    auto const& [gpu, need] = needs[i];
    check().gpu(need, free_memory(gpu), gpu);
  }
}

LOCKSTEP_COLD_INLINE MemoryCheck MemoryNeeds::check() const {
  return {sizes_.parameters, ranks_here_, can_shard_, sizes_.moments};
}

}}}  // namespace lockstep::parallel::detail
