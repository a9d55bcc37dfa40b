// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/checksum.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Arenas of the layout that must be equal on all replicas: the parameters' values, then other state per parameter, for
/// example the optimizer's moments.
using ReplicaArenas = std::vector<float const*>;

namespace detail {

/// Returns a 128-bit checksum for each parameter in each arena, without padding.
[[nodiscard]] inline std::vector<Checksum> checksums(nn::ParameterLayout const& layout, ReplicaArenas const& arenas) {
  std::vector<Checksum> out;
  for (auto const* arena : arenas)
    for (auto const& entry : layout.entries())
      out.push_back(checksum(std::as_bytes(std::span(arena + entry.offset, static_cast<std::size_t>(entry.size)))));
  return out;
}

/// Throws an error for unequal replicas.
/// @param all concatenated checksums of every replica
/// @param place name of a replica, for the error
/// @param why possible cause, for the error
/// @throws CollectiveMismatch unless all checksums equal the first replica's
inline void expect_equal_checksums(nn::ParameterLayout const& layout, std::span<Checksum const> all,
                                   std::size_t replicas, std::string const& place, std::string const& why, Index step) {
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

}  // namespace detail

/// Compares the bits of all ranks' parameters, and of the other `arenas`, by 128-bit hashes.
/// @param step named in the error
/// @shape each of arenas [layout.size()], equally many on all ranks   @collective
/// @throws CollectiveMismatch on all ranks if replicas differ, with the first parameter that differs and the ranks that
/// differ from rank 0
template <class Communicator>
void check_replicas(Communicator& communicator, nn::ParameterLayout const& layout, ReplicaArenas const& arenas,
                    Index step) {
  auto const ranks = static_cast<std::size_t>(communicator.size());
  if (ranks == 1) return;
  auto const mine = detail::checksums(layout, arenas);
  auto const whole = checksum(std::as_bytes(std::span(mine)));
  std::vector<Checksum> all(ranks);
  detail::all_gather_bytes(communicator, &whole, all.data(), sizeof whole);
  bool equal = true;
  for (auto const& other : all) equal = equal && other == all[0];
  if (equal) return;
  all.resize(ranks * mine.size());
  detail::all_gather_bytes(communicator, mine.data(), all.data(), std::span(mine).size_bytes());
  detail::expect_equal_checksums(layout, all, ranks, "rank",
                                 "a rank changed its parameters on its own or took a step with other options", step);
}

}}}  // namespace lockstep::parallel
