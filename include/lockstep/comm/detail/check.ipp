// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/detail/check.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE void refuse_operation(std::string const& reason) {
  throw ConfigError("Communicator::start: " + reason);
}

LOCKSTEP_INLINE void check_reduction(CollectiveOperation const& operation) {
  auto const refuse = [&](char const* what, char const* rule) {
    refuse_operation(std::string(what) + " of " + name(operation.type) + " elements: " + rule);
  };
  bool const integers = operation.type == ElementType::int32 || operation.type == ElementType::int64 ||
                        operation.type == ElementType::uint8;
  if (integers && operation.reduction == Reduction::average) refuse("the average", "sum them, then divide");
  if (!integers && (operation.reduction == Reduction::logical_or || operation.reduction == Reduction::logical_and))
    refuse("a logical operation", "it needs integers");
}

LOCKSTEP_INLINE void check_memory(CollectiveOperation const& operation, void const* data, Index count,
                                  char const* what) {
  if (count > 0 && data == nullptr)
    refuse_operation(std::string("the operation has elements but no memory (") + what + " is null)");
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(operation.type) != 0)
    refuse_operation(std::string("the operation's memory is not aligned for ") + name(operation.type));
}

LOCKSTEP_INLINE void check_counts(CollectiveOperation const& operation, int ranks) {
  if (operation.counts.empty()) return;
  if (operation.collective != Collective::all_gather)
    refuse_operation("only the parts of an all_gather may be unequal");
  if (std::ssize(operation.counts) != ranks)
    refuse_operation("counts has " + std::to_string(operation.counts.size()) + " entries; it needs one for each of " +
                     std::to_string(ranks) + " ranks");
  for (auto const count : operation.counts)
    if (count < 0) refuse_operation("a part has " + std::to_string(count) + " elements; it needs 0 or more");
}

LOCKSTEP_INLINE void check(CollectiveOperation const& operation, int rank, int ranks) {
  if (operation.collective == Collective::allocate)
    refuse_operation("allocate is not an operation to start; call Communicator::allocate");
  if (operation.count < 0)
    refuse_operation("the operation has " + std::to_string(operation.count) + " elements; it needs 0 or more");
  check_counts(operation, ranks);
  check_memory(operation, operation.data, largest_part(operation), "data");
  if (has_separate_input(operation.collective))
    check_memory(operation, operation.in, part_elements(operation, rank) * input_parts(operation, ranks), "in");
  if (reduces(operation.collective)) check_reduction(operation);
  if (operation.collective == Collective::broadcast && (operation.root < 0 || operation.root >= ranks))
    refuse_operation("the root of a broadcast is " + std::to_string(operation.root) + "; ranks are 0 to " +
                     std::to_string(ranks - 1));
  if (!operation.piggybacked_scalars.empty() && operation.collective != Collective::all_reduce)
    refuse_operation("only an all_reduce carries the doubles of `piggybacked_scalars`");
  if (std::ssize(operation.piggybacked_scalars) > CollectiveOperation::max_piggybacked_scalars)
    refuse_operation("piggybacked_scalars has " + std::to_string(operation.piggybacked_scalars.size()) +
                     " doubles; an operation carries at most " +
                     std::to_string(CollectiveOperation::max_piggybacked_scalars));
}

}}}  // namespace lockstep::comm::detail
