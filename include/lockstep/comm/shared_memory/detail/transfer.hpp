// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Copies and reduces one rank's part of an operation, once the data of all ranks may be read. SharedMemoryRank
/// synchronizes the access.
class Transfer {
 public:
  Transfer(GroupMemory const& memory, int rank);

  /// Computes this rank's whole result from the slots, which hold the inputs of all ranks.
  void combine_small(CollectiveOperation const& operation, std::uint32_t slot);

  /// Computes elements [begin, begin + n) of each part, from the memory of all ranks, or from the staging area if it
  /// cannot be reached. In an all_reduce, computes this rank's slice and writes it to all ranks.
  void combine(CollectiveOperation const& operation, std::uint32_t slot, Index begin, Index n);

  /// Concatenates elements [begin, begin + n) of each part of this rank's input in `to`, where other ranks can read
  /// them.
  void stage(CollectiveOperation const& operation, Index begin, Index n, std::byte* to) const;

  /// Sums the piggybacked doubles on every rank, in the same tree as the elements.
  void sum_scalars(CollectiveOperation const& operation, std::uint32_t slot);

 private:
  static constexpr Index line_bytes = 64;

  [[nodiscard]] void const*& input(int rank) noexcept { return inputs_[static_cast<std::size_t>(rank)]; }

  void copy(CollectiveOperation const& operation, Index begin, Index n);
  static void copy_part(std::byte* to, void const* from, Index n) noexcept;

  GroupMemory const* memory_;
  int rank_, size_;
  std::vector<void const*> inputs_;
  std::vector<void*> outputs_;
};

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/shared_memory/detail/transfer.ipp>
#endif
