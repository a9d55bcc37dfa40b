// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/scaling/detail/rounded.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// A possible change and its expected gain.
struct Remedy {
  double gain = 0;  ///< gain in samples per second: 0.1 is 1.1 times as fast; 0: unknown
  std::string description;
};

/// Sorts remedies, the best first.
inline void sort(std::vector<Remedy>& remedies) {
  std::stable_sort(remedies.begin(), remedies.end(), [](auto const& a, auto const& b) { return a.gain > b.gain; });
}

/// Returns one line per remedy.
[[nodiscard]] inline std::string lines(std::vector<Remedy> const& remedies) {
  std::string out;
  for (auto const& remedy : remedies) {
    auto const percent = rounded(100 * remedy.gain, 0);
    out += remedy.gain > 0 ? "  +" + std::string(percent.size() < 3 ? 3 - percent.size() : 0, ' ') + percent + " %  "
                           : "         ";
    out += remedy.description + "\n";
  }
  return out;
}

}}}  // namespace lockstep::scaling::detail
