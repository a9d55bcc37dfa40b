// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <lockstep/comm/detail/group_memory.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// A collective operation that a rank has asked for.
struct Request {
  Kind kind = Kind::barrier;
  ElementType type = ElementType::float32;
  Operation operation = Operation::sum;
  Index count = 0;  // elements of an all_reduce, else bytes
  int root = 0;
  void const* in = nullptr;
  void* out = nullptr;
  std::span<double> rider = {};
  Piece* piece = nullptr;
  Index address = -1;      // of the input, for the others
  bool copied = false;     // a copy in the slot stands in for the memory
  bool needs_all = false;  // others work on this rank's memory, or on its copy: complete when they are done

  [[nodiscard]] Index element_bytes() const noexcept {
    return kind == Kind::all_reduce ? static_cast<Index>(size_of(type)) : 1;
  }
  /// What moves between ranks.
  [[nodiscard]] Index bytes() const noexcept {
    return kind == Kind::barrier || kind == Kind::allocate ? 0 : count * element_bytes();
  }
  /// Whether what this rank has goes to the others.
  [[nodiscard]] bool gives(int rank) const noexcept { return kind != Kind::broadcast || rank == root; }
  [[nodiscard]] Descriptor descriptor() const noexcept {
    return {kind, type, operation, static_cast<std::int32_t>(rider.size()), root, count, address};
  }
};

/// What one rank does with the bytes of one operation once those of all ranks may be read. Who may read when is the
/// affair of SharedMemoryRank.
class Transfer {
 public:
  Transfer(GroupMemory const& memory, int rank, int size)
      : memory_(&memory), rank_(rank), size_(size), in_(static_cast<std::size_t>(size)), out_(in_.size()) {}

  /// From the slots, which hold the inputs of all ranks: every rank works out all of the result by itself.
  void combine_small(Request const& request, std::uint32_t slot) {
    for (int r = 0; r < size_; ++r) in(r) = memory_->block(r).slot[slot].input.data();
    if (request.kind == Kind::all_reduce) {
      out_[0] = request.out;
      reduce_range(request.operation, request.type, in_.data(), size_, out_.data(), 1, 0, request.count);
    } else {
      copy(request, 0, request.bytes());
    }
  }

  /// Elements [begin, begin + n) from the memory of all ranks, or from the staging area where it cannot be reached. Of
  /// a sum this rank works out its own slice, and writes it for all.
  void combine(Request const& request, std::uint32_t slot, Index begin, Index n) {
    for (int r = 0; r < size_; ++r) {
      auto const address = memory_->block(r).slot[slot].descriptor.address;
      in(r) = address >= 0 ? memory_->at(address + begin * request.element_bytes()) : memory_->block(r).staging.data();
      out_[static_cast<std::size_t>(r)] = const_cast<void*>(in(r));
    }
    if (request.kind == Kind::all_reduce) {
      auto const groups = (n + group - 1) / group;
      auto const from = std::min(n, groups * rank_ / size_ * group),
                 to = std::min(n, groups * (rank_ + 1) / size_ * group);
      reduce_range(request.operation, request.type, in_.data(), size_, out_.data(), size_, from, to);
    } else {
      copy(request, begin, n);
    }
  }

  /// Riders are summed by every rank for itself, in the same tree as the elements.
  void sum_riders(Request const& request, std::uint32_t slot) {
    if (request.rider.empty()) return;
    for (int r = 0; r < size_; ++r) in(r) = memory_->block(r).slot[slot].rider.data();
    out_[0] = request.rider.data();
    reduce_range(Operation::sum, ElementType::float64, in_.data(), size_, out_.data(), 1, 0, std::ssize(request.rider));
  }

 private:
  static constexpr Index group = 16;  // slices meet on borders of this many elements: not within a cache line

  [[nodiscard]] void const*& in(int rank) noexcept { return in_[static_cast<std::size_t>(rank)]; }

  void copy(Request const& request, Index begin, Index n) {
    auto* const out = static_cast<std::byte*>(request.out) + begin;
    if (request.kind == Kind::broadcast) {
      if (rank_ != request.root) move(out, in(request.root), n);
    } else if (request.kind == Kind::all_gather) {
      for (int r = 0; r < size_; ++r) move(out + r * request.count, in(r), n);
    }
  }
  static void move(std::byte* to, void const* from, Index n) noexcept {
    // An input may lie at its place in the output, where others are reading it.
    if (n != 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(n));
  }

  GroupMemory const* memory_;
  int rank_, size_;
  std::vector<void const*> in_;
  std::vector<void*> out_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
