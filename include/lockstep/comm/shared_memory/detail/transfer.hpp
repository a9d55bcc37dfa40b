// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include <lockstep/comm/detail/request.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Copies and reduces one rank's part of an operation, once the data of all ranks may be read. SharedMemoryRank
/// synchronizes the access.
class Transfer {
 public:
  Transfer(GroupMemory const& memory, int rank)
      : memory_(&memory), rank_(rank), size_(memory.size()), in_(static_cast<std::size_t>(size_)), out_(in_.size()) {}

  /// Computes this rank's whole result from the slots, which hold the inputs of all ranks.
  void combine_small(Request const& request, std::uint32_t slot) {
    auto const own = request.kind == Kind::reduce_scatter ? rank_ * request.count * request.element_bytes() : Index{0};
    for (int r = 0; r < size_; ++r) in(r) = memory_->block(r).slot[slot].input.data() + own;
    if (computes(request)) {
      out_[0] = request.out;
      reduce_range(request.operation, request.type, in_.data(), size_, out_.data(), 1, 0, request.count);
    } else {
      copy(request, 0, request.largest_part());
    }
  }

  /// Computes elements [begin, begin + n) of each part, from the memory of all ranks, or from the staging area if it
  /// cannot be reached. In an all_reduce, computes this rank's slice and writes it to all ranks.
  void combine(Request const& request, std::uint32_t slot, Index begin, Index n) {
    auto const size = request.element_bytes();
    bool const scatters = request.kind == Kind::reduce_scatter;
    for (int r = 0; r < size_; ++r) {
      auto const address = memory_->block(r).slot[slot].descriptor.address();
      in(r) = address >= 0 ? memory_->at(address + (begin + (scatters ? rank_ * request.count : 0)) * size)
                           : memory_->block(r).staging.data() + (scatters ? rank_ * n * size : 0);
      out_[static_cast<std::size_t>(r)] = const_cast<void*>(in(r));
    }
    if (request.kind == Kind::all_reduce) {
      auto const group = line_bytes / size;  // slices do not share a cache line
      auto const groups = (n + group - 1) / group;
      auto const from = std::min(n, groups * rank_ / size_ * group),
                 to = std::min(n, groups * (rank_ + 1) / size_ * group);
      reduce_range(request.operation, request.type, in_.data(), size_, out_.data(), size_, from, to);
    } else if (scatters) {
      out_[0] = static_cast<std::byte*>(request.out) + begin * size;
      reduce_range(request.operation, request.type, in_.data(), size_, out_.data(), 1, 0, n);
    } else {
      copy(request, begin, n);
    }
  }

  /// Concatenates elements [begin, begin + n) of each part of this rank's input in `to`, where other ranks can read
  /// them.
  void stage(Request const& request, Index begin, Index n, std::byte* to) const {
    auto const size = request.element_bytes();
    auto const own = std::min(n, request.part(rank_) - begin);
    if (own <= 0) return;
    for (Index part = 0; part < request.parts(size_); ++part)
      std::memcpy(to + part * n * size,
                  static_cast<std::byte const*>(request.in) + (part * request.count + begin) * size,
                  static_cast<std::size_t>(own * size));
  }

  /// Sums the piggybacked doubles on every rank, in the same tree as the elements.
  void sum_riders(Request const& request, std::uint32_t slot) {
    if (request.rider.empty()) return;
    for (int r = 0; r < size_; ++r) in(r) = memory_->block(r).slot[slot].rider.data();
    out_[0] = request.rider.data();
    reduce_range(Operation::sum, ElementType::float64, in_.data(), size_, out_.data(), 1, 0, std::ssize(request.rider));
  }

 private:
  static constexpr Index line_bytes = 64;

  [[nodiscard]] static bool computes(Request const& request) noexcept {
    return request.kind == Kind::all_reduce || request.kind == Kind::reduce_scatter;
  }
  [[nodiscard]] void const*& in(int rank) noexcept { return in_[static_cast<std::size_t>(rank)]; }

  void copy(Request const& request, Index begin, Index n) {
    auto const size = request.element_bytes();
    auto* out = static_cast<std::byte*>(request.out) + begin * size;
    if (request.kind == Kind::broadcast) {
      if (rank_ != request.root) move(out, in(request.root), n * size);
    } else if (request.kind == Kind::all_gather) {
      for (int r = 0; r < size_; out += request.part(r++) * size)
        move(out, in(r), std::min(n, request.part(r) - begin) * size);
    }
  }
  static void move(std::byte* to, void const* from, Index n) noexcept {
    // An input may be in place in the output, where other ranks read it.
    if (n > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(n));
  }

  GroupMemory const* memory_;
  int rank_, size_;
  std::vector<void const*> in_;
  std::vector<void*> out_;
};

}}}  // namespace lockstep::comm::detail
