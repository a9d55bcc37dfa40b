// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/comm/operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Returns whether the collective computes sums or another reduction.
[[nodiscard]] inline bool reduces(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

/// Returns whether the collective has its input in `in` instead of `data`.
[[nodiscard]] inline bool has_separate_input(Collective collective) noexcept {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather;
}

[[nodiscard]] inline void const* input_of(CollectiveOperation const& operation) noexcept {
  return has_separate_input(operation.collective) ? operation.in : operation.data;
}

[[nodiscard]] inline Index element_bytes(CollectiveOperation const& operation) noexcept {
  return static_cast<Index>(size_of(operation.type));
}

/// Returns the number of elements that belong to one rank, in its result or its input.
[[nodiscard]] inline Index part_elements(CollectiveOperation const& operation, int rank) noexcept {
  if (operation.collective == Collective::barrier || operation.collective == Collective::allocate) return 0;
  return operation.counts.empty() ? operation.count : operation.counts[static_cast<std::size_t>(rank)];
}

[[nodiscard]] inline Index largest_part(CollectiveOperation const& operation) noexcept {
  return operation.counts.empty() ? part_elements(operation, 0)
                                  : *std::max_element(operation.counts.begin(), operation.counts.end());
}

/// Returns the number of parts in an input.
[[nodiscard]] inline Index input_parts(CollectiveOperation const& operation, int ranks) noexcept {
  return operation.collective == Collective::reduce_scatter ? ranks : 1;
}

/// Returns the number of bytes that a rank gives to the others.
[[nodiscard]] inline Index input_bytes(CollectiveOperation const& operation, int rank, int ranks) noexcept {
  if (operation.collective == Collective::broadcast && rank != operation.root) return 0;
  return part_elements(operation, rank) * input_parts(operation, ranks) * element_bytes(operation);
}

/// Returns the size of the largest input of a rank. Equal on all ranks.
[[nodiscard]] inline Index largest_input_bytes(CollectiveOperation const& operation, int ranks) noexcept {
  return largest_part(operation) * input_parts(operation, ranks) * element_bytes(operation);
}

}}}  // namespace lockstep::comm::detail
