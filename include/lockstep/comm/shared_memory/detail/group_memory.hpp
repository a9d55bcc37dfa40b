// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/comm/shared_memory/detail/rank_block.hpp>
#include <lockstep/launch/shared_memory/shared_segment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Shared memory of a group of ranks: a RankBlock each, and the segment's heaps. The segment holds the control page,
/// and a RankBlock and a heap for each rank of the run. RankBlocks of smaller groups are in heaps. Addresses are
/// offsets from the start of the segment, so they are equal in all mappings.
class GroupMemory {
 public:
  /// Group of all ranks of the run.
  GroupMemory(std::shared_ptr<launch::SharedSegment> segment, int size) : segment_(std::move(segment)) {
    auto const ranks = static_cast<std::size_t>(size);
    constexpr auto unit = launch::SharedSegment::unit;
    heaps_ = (blocks + ranks * sizeof(RankBlock) + unit - 1) / unit * unit;
    heap_bytes_ = (segment_->bytes() - heaps_) / ranks / unit * unit;
    for (int r = 0; r < size; ++r) members_.push_back({r, reinterpret_cast<RankBlock*>(segment_->data() + blocks) + r});
  }

  struct Member {
    int run_rank;  // rank in the run
    RankBlock* block;
  };
  /// Group of some ranks of another group, in the given order, with RankBlocks of their own.
  GroupMemory(GroupMemory const& all, std::vector<Member> members) : GroupMemory(all) { members_ = std::move(members); }

  [[nodiscard]] launch::ControlPage& control() const noexcept { return segment_->control(); }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] RankBlock& block(int rank) const noexcept { return *members_[static_cast<std::size_t>(rank)].block; }
  [[nodiscard]] int run_rank(int rank) const noexcept { return members_[static_cast<std::size_t>(rank)].run_rank; }
  [[nodiscard]] std::size_t heap_bytes() const noexcept { return heap_bytes_; }
  [[nodiscard]] std::byte* heap(int rank) const noexcept {
    return segment_->data() + heaps_ + static_cast<std::size_t>(run_rank(rank)) * heap_bytes_;
  }

  [[nodiscard]] std::byte* at(Index address) const noexcept { return segment_->data() + address; }
  [[nodiscard]] Index offset(void const* data) const noexcept {
    return static_cast<Index>(reinterpret_cast<std::uintptr_t>(data) -
                              reinterpret_cast<std::uintptr_t>(segment_->data()));
  }
  /// Returns the offset of memory in a heap, or -1 for other memory, which other ranks may not be able to read.
  [[nodiscard]] Index address(void const* data) const noexcept {
    auto const at = offset(data);
    return at >= static_cast<Index>(heaps_) && at < static_cast<Index>(segment_->bytes()) ? at : Index{-1};
  }
  /// Zeroes memory and returns its pages to the system.
  void release_pages(std::byte* data, std::size_t bytes) const noexcept { segment_->release_pages(data, bytes); }

 private:
  static constexpr std::size_t blocks = (sizeof(launch::ControlPage) + 4095) / 4096 * 4096;

  std::shared_ptr<launch::SharedSegment> segment_;
  std::size_t heaps_ = 0, heap_bytes_ = 0;
  std::vector<Member> members_;
};

}}}  // namespace lockstep::comm::detail
