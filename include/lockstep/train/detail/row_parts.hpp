// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the number of steps until the rows of all ranks are gathered again, from the steps and bytes of the last
/// part. It depends on nothing else, so that all ranks agree.
[[nodiscard]] inline Index next_part(Index steps, std::size_t bytes) noexcept {
  constexpr std::size_t wanted = std::size_t{1} << 20;
  if (bytes < wanted / 2) return 2 * steps;
  return bytes > wanted ? std::max<Index>(1, steps / static_cast<Index>(bytes / wanted + 1)) : steps;
}

/// Sends rows to all ranks in parts of about a megabyte, so that memory does not grow with their number.
class RowParts {
 public:
  /// Counts a step. Returns whether the part ends with it, equally on all ranks.
  [[nodiscard]] bool ends_with_step(bool is_last) noexcept { return ++steps_ >= wanted_ || is_last; }
  /// Ends a part: calls receive(rows) on each rank with the rows of each rank in turn, `own` with this rank's.
  /// @param broadcast broadcast(rows, root) returns the rows of the rank `root`
  /// @collective
  void exchange(int rank, int ranks, std::string own, auto const& broadcast, auto const& receive) {
    std::size_t bytes = 0;
    for (int root = 0; root < ranks; ++root) {
      std::string const rows = broadcast(root == rank ? std::exchange(own, {}) : std::string(), root);
      bytes += rows.size();
      receive(rows);
    }
    wanted_ = next_part(std::exchange(steps_, 0), bytes);
  }

 private:
  Index wanted_ = 1, steps_ = 0;
};

}}}  // namespace lockstep::train::detail
