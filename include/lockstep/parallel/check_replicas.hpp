// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/checksum.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/parallel/detail/of_bytes.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// What replicas should have alike: the parameters' values, then whatever else is kept per parameter, such as an
/// optimizer's moments. Each is an arena of the layout.
using ReplicaArenas = std::vector<float const*>;

namespace detail {

/// 128 bits for each parameter in each arena; of padding nothing.
[[nodiscard]] inline std::vector<Checksum> checksums(nn::ParameterLayout const& layout, ReplicaArenas const& arenas) {
  std::vector<Checksum> out;
  for (auto const* arena : arenas)
    for (auto const& entry : layout.entries())
      out.push_back(checksum(std::as_bytes(std::span(arena + entry.offset, static_cast<std::size_t>(entry.size)))));
  return out;
}

/// `all` holds the checksums of every replica, one behind the other; `place` is what a replica is called, and `why`
/// what may have changed one alone.
/// @throws CollectiveMismatch when they are not all the first one's
inline void refuse_parted(nn::ParameterLayout const& layout, std::span<Checksum const> all, std::size_t replicas,
                          std::string const& place, std::string const& why, Index step) {
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
                             layout.entries()[i % parameters].name + "\" of " + differ + " is not " + place +
                             " 0's, bit for bit; " + why +
                             ", or a processor or memory erred: start again from a checkpoint made before");
  }
}

}  // namespace detail

/// Compares the bits of all parameters over ranks, and of what else is in `arenas`, by a hash of 128 bits; `step` is
/// named in the error.
/// @shape each of arenas [layout.size()], and as many on all ranks   @collective
/// @throws CollectiveMismatch on all ranks when replicas have parted: names the first parameter that differs, and all
/// ranks whose one is not rank 0's
template <class Communicator>
void check_replicas(Communicator& communicator, nn::ParameterLayout const& layout, ReplicaArenas const& arenas,
                    Index step) {
  auto const ranks = static_cast<std::size_t>(communicator.size());
  if (ranks == 1) return;
  auto const mine = detail::checksums(layout, arenas);
  auto const whole = checksum(std::as_bytes(std::span(mine)));
  std::vector<Checksum> all(ranks);
  detail::all_gather_bytes(communicator, &whole, all.data(), sizeof whole);
  bool alike = true;
  for (auto const& other : all) alike = alike && other == all[0];
  if (alike) return;
  all.resize(ranks * mine.size());
  detail::all_gather_bytes(communicator, mine.data(), all.data(), std::span(mine).size_bytes());
  detail::refuse_parted(layout, all, ranks, "rank",
                        "a rank changed its numbers by itself or made a step with options of its own", step);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
