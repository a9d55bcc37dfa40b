// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the number of letters to insert, delete, change or swap with the next one to turn one word into the other
/// (optimal string alignment). Ignores case and treats '_' as '-'. Costs the product of the lengths.
[[nodiscard]] int edit_distance(std::string_view from, std::string_view to);

/// Returns the candidate that `name` most likely means, for "the nearest is …": the least edit distance, the first on
/// ties. Empty if there are no candidates.
template <class Candidates>
[[nodiscard]] std::string nearest(std::string_view name, Candidates const& candidates) {
  constexpr std::size_t most = 100;  // a file may hold names of any length
  std::string best;
  int least = -1;
  for (auto const& candidate : candidates) {
    int const distance = edit_distance(name.substr(0, most), std::string_view(candidate).substr(0, most));
    if (least >= 0 && distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/nearest.ipp>
#endif
