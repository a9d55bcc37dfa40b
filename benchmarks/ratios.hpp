// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep_bench {

/// The value that a part `share` of `values` does not exceed, between two of them linearly.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  double const at = share * static_cast<double>(values.size() - 1);
  auto const below = static_cast<std::size_t>(at);
  auto const above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Prints how we compare with `peer`: the median of `ratios`, one per round (1 is parity, more is better for us), with
/// the tenth and the ninetieth percentile, and adds the line to the CSV file that LOCKSTEP_RATIOS names, if it does.
inline void add_ratio(std::string_view benchmark, std::string_view name, std::string_view peer,
                      std::span<double const> ratios) {
  std::vector<double> const values(ratios.begin(), ratios.end());
  if (values.empty()) return;
  double const middle = quantile(values, 0.5), low = quantile(values, 0.1), high = quantile(values, 0.9);
  std::printf("%-16.*s %-48.*s against %-10.*s %8.3f  [%.3f, %.3f]\n", static_cast<int>(benchmark.size()),
              benchmark.data(), static_cast<int>(name.size()), name.data(), static_cast<int>(peer.size()), peer.data(),
              middle, low, high);
  char const* const path = std::getenv("LOCKSTEP_RATIOS");
  std::FILE* const file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::fprintf(file, "%.*s,\"%.*s\",%.*s,%.4g,%.4g,%.4g\n", static_cast<int>(benchmark.size()), benchmark.data(),
               static_cast<int>(name.size()), name.data(), static_cast<int>(peer.size()), peer.data(), middle, low,
               high);
  std::fclose(file);
}

}  // namespace lockstep_bench
