// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/detail/operation_sizes.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE bool reduces(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

LOCKSTEP_INLINE bool has_separate_input(Collective collective) noexcept {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather;
}

LOCKSTEP_INLINE void const* input_of(CollectiveOperation const& operation) noexcept {
  return has_separate_input(operation.collective) ? operation.in : operation.data;
}

LOCKSTEP_INLINE Index element_bytes(CollectiveOperation const& operation) noexcept {
  return static_cast<Index>(size_of(operation.type));
}

LOCKSTEP_INLINE Index part_elements(CollectiveOperation const& operation, int rank) noexcept {
  if (operation.collective == Collective::barrier || operation.collective == Collective::allocate) return 0;
  return operation.counts.empty() ? operation.count : operation.counts[static_cast<std::size_t>(rank)];
}

LOCKSTEP_INLINE Index largest_part(CollectiveOperation const& operation) noexcept {
  return operation.counts.empty() ? part_elements(operation, 0)
                                  : *std::max_element(operation.counts.begin(), operation.counts.end());
}

LOCKSTEP_INLINE Index input_parts(CollectiveOperation const& operation, int ranks) noexcept {
  return operation.collective == Collective::reduce_scatter ? ranks : 1;
}

LOCKSTEP_INLINE Index input_bytes(CollectiveOperation const& operation, int rank, int ranks) noexcept {
  if (operation.collective == Collective::broadcast && rank != operation.root) return 0;
  return part_elements(operation, rank) * input_parts(operation, ranks) * element_bytes(operation);
}

LOCKSTEP_INLINE Index largest_input_bytes(CollectiveOperation const& operation, int ranks) noexcept {
  return largest_part(operation) * input_parts(operation, ranks) * element_bytes(operation);
}

}}}  // namespace lockstep::comm::detail
