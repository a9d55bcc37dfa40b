// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/out_of_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE std::string out_of_memory_message(std::string const& who, std::uint64_t bytes) {
  auto const memory = FreeMemory::of_host();
  return who + ": out of memory: it needs at least " + memory_size(static_cast<double>(bytes)) +
         (memory ? ", and " + memory->text() : std::string(", which the system refused")) +
         "; use a smaller file or a part of it, or raise the limit (ulimit -v, the job's memory)";
}

}}  // namespace lockstep
