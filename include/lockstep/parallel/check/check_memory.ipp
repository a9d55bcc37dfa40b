// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/check/check_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

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

}}}  // namespace lockstep::parallel::detail
