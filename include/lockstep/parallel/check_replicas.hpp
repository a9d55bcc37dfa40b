// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/parallel/detail/fingerprint.hpp>
#include <lockstep/parallel/detail/of_bytes.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// Compares the bits of all parameters over ranks, by a hash of 128 bits; `step` is named in the error.
/// @shape values [layout.size()]   @collective
/// @throws CollectiveMismatch on all ranks when replicas have parted: names the first parameter that differs, and all
/// ranks whose one is not rank 0's
template <class Communicator>
void check_replicas(Communicator& communicator, nn::ParameterLayout const& layout, std::span<float const> values,
                    Index step) {
  auto const ranks = static_cast<std::size_t>(communicator.size());
  if (ranks == 1) return;
  auto const& entries = layout.entries();
  std::vector<detail::Fingerprint> mine;
  for (auto const& entry : entries)
    mine.push_back(detail::fingerprint(
        std::as_bytes(values.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size)))));
  auto const whole = detail::fingerprint(std::as_bytes(std::span(mine)));
  std::vector<detail::Fingerprint> all(ranks);
  detail::all_gather_bytes(communicator, &whole, all.data(), sizeof whole);
  bool alike = true;
  for (auto const& other : all) alike = alike && other == all[0];
  if (alike) return;

  all.resize(ranks * mine.size());
  detail::all_gather_bytes(communicator, mine.data(), all.data(), std::span(mine).size_bytes());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::string differ;
    for (std::size_t rank = 1; rank < ranks; ++rank)
      if (all[rank * mine.size() + i] != all[i])
        differ += (differ.empty() ? "rank " : ", rank ") + std::to_string(rank);
    if (!differ.empty())
      throw CollectiveMismatch("after step " + std::to_string(step) + " the parameter \"" + entries[i].name + "\" of " +
                               differ +
                               " is not rank 0's, bit for bit; a rank changed its parameters by itself, or a " +
                               "processor or memory erred: start again from a checkpoint made before");
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
