// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <utility>

#include <lockstep/comm/detail/rank_block.hpp>
#include <lockstep/launch/shared_segment.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// How the shared segment is divided: the control page, a RankBlock per rank, a heap per rank. An address counts from
/// the start of the segment, so that it means the same to all ranks wherever they have mapped it.
class GroupMemory {
 public:
  GroupMemory(std::shared_ptr<launch::SharedSegment> segment, int size) : segment_(std::move(segment)) {
    auto const ranks = static_cast<std::size_t>(size);
    constexpr auto unit = launch::SharedSegment::unit;
    heaps_ = (blocks + ranks * sizeof(RankBlock) + unit - 1) / unit * unit;
    heap_bytes_ = (segment_->bytes() - heaps_) / ranks / unit * unit;
  }

  [[nodiscard]] launch::ControlPage& control() const noexcept { return segment_->control(); }
  [[nodiscard]] RankBlock& block(int rank) const noexcept {
    return reinterpret_cast<RankBlock*>(segment_->data() + blocks)[rank];
  }
  [[nodiscard]] std::size_t heap_bytes() const noexcept { return heap_bytes_; }
  [[nodiscard]] std::byte* heap(int rank) const noexcept {
    return segment_->data() + heaps_ + static_cast<std::size_t>(rank) * heap_bytes_;
  }

  [[nodiscard]] std::byte* at(Index address) const noexcept { return segment_->data() + address; }
  [[nodiscard]] Index offset(void const* data) const noexcept {
    return static_cast<Index>(reinterpret_cast<std::uintptr_t>(data) -
                              reinterpret_cast<std::uintptr_t>(segment_->data()));
  }
  /// The same for memory of the heaps; -1 for any other, which may not be there for the others, or not for long.
  [[nodiscard]] Index address(void const* data) const noexcept {
    auto const at = offset(data);
    return at >= static_cast<Index>(heaps_) && at < static_cast<Index>(segment_->bytes()) ? at : Index{-1};
  }
  /// Back to zeros that cost no memory.
  void forget(std::byte* data, std::size_t bytes) const noexcept { segment_->forget(data, bytes); }

 private:
  static constexpr std::size_t blocks = (sizeof(launch::ControlPage) + 4095) / 4096 * 4096;

  std::shared_ptr<launch::SharedSegment> segment_;
  std::size_t heaps_ = 0, heap_bytes_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
