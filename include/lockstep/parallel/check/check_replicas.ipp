// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/check/check_replicas.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

LOCKSTEP_COLD_INLINE std::vector<Checksum> checksums(nn::ParameterLayout const& layout, ReplicaArenas const& arenas) {
  std::vector<Checksum> out;
  for (auto const* arena : arenas)
    for (auto const& entry : layout.entries()) {
      out.emplace_back();
      if (entry.frozen && arena != arenas[0]) continue;
      out.back() = checksum(std::as_bytes(std::span(arena + entry.offset, static_cast<std::size_t>(entry.size))));
    }
  return out;
}

LOCKSTEP_COLD_INLINE Checksum checksum_of(std::vector<Checksum> const& checksums) {
  return checksum(std::as_bytes(std::span(checksums)));
}

LOCKSTEP_COLD_INLINE bool all_equal(std::vector<Checksum> const& checksums) noexcept {
  for (auto const& other : checksums)
    if (other != checksums[0]) return false;
  return true;
}

LOCKSTEP_COLD_INLINE void expect_equal_checksums(nn::ParameterLayout const& layout, std::span<Checksum const> all,
                                                 std::size_t replicas, std::string const& place, std::string const& why,
                                                 Index step) {
  auto const each = all.size() / replicas;
  for (std::size_t i = 0; i < each; ++i) {
    std::string differ;
    for (std::size_t replica = 1; replica < replicas; ++replica)
      if (all[replica * each + i] != all[i])
        differ += (differ.empty() ? "" : ", ") + place + " " + std::to_string(replica);
    if (differ.empty()) continue;
    auto const parameters = layout.entries().size();
    auto const what =
        i < parameters ? "the parameter" : "the optimizer's moment " + std::to_string(i / parameters) + " of";
    throw CollectiveMismatch("after step " + std::to_string(step) + " " + what + " \"" +
                             layout.entries()[i % parameters].name + "\" of " + differ + " differs from " + place +
                             " 0's; " + why + ", or a processor or memory failed: restart from an earlier checkpoint");
  }
}

}}}  // namespace lockstep::parallel::detail
