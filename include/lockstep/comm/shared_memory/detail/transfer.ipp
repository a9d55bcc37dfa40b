// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/shared_memory/detail/transfer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE Transfer::Transfer(GroupMemory const& memory, int rank)
    : memory_(&memory),
      rank_(rank),
      size_(memory.size()),
      inputs_(static_cast<std::size_t>(size_)),
      outputs_(inputs_.size()) {}

LOCKSTEP_INLINE void Transfer::combine_small(CollectiveOperation const& operation, std::uint32_t slot) {
  auto const own = operation.collective == Collective::reduce_scatter
                       ? rank_ * operation.count * element_bytes(operation)
                       : Index{0};
  for (int r = 0; r < size_; ++r) input(r) = memory_->block(r).slot[slot].input.data() + own;
  if (reduces(operation.collective)) {
    outputs_[0] = operation.data;
    reduce_range(operation.reduction, operation.type, inputs_.data(), size_, outputs_.data(), 1, 0, operation.count);
  } else {
    copy(operation, 0, largest_part(operation));
  }
}

LOCKSTEP_INLINE void Transfer::combine(CollectiveOperation const& operation, std::uint32_t slot, Index begin, Index n) {
  auto const size = element_bytes(operation);
  bool const scatters = operation.collective == Collective::reduce_scatter;
  for (int r = 0; r < size_; ++r) {
    auto const address = memory_->block(r).slot[slot].descriptor.address();
    input(r) = address >= 0 ? memory_->at(address + (begin + (scatters ? rank_ * operation.count : 0)) * size)
                            : memory_->block(r).staging.data() + (scatters ? rank_ * n * size : 0);
    outputs_[static_cast<std::size_t>(r)] = const_cast<void*>(input(r));
  }
  if (operation.collective == Collective::all_reduce) {
    auto const group = line_bytes / size;  // slices do not share a cache line
    auto const groups = (n + group - 1) / group;
    auto const from = std::min(n, groups * rank_ / size_ * group),
               to = std::min(n, groups * (rank_ + 1) / size_ * group);
    reduce_range(operation.reduction, operation.type, inputs_.data(), size_, outputs_.data(), size_, from, to);
  } else if (scatters) {
    outputs_[0] = static_cast<std::byte*>(operation.data) + begin * size;
    reduce_range(operation.reduction, operation.type, inputs_.data(), size_, outputs_.data(), 1, 0, n);
  } else {
    copy(operation, begin, n);
  }
}

LOCKSTEP_INLINE void Transfer::stage(CollectiveOperation const& operation, Index begin, Index n, std::byte* to) const {
  auto const size = element_bytes(operation);
  auto const own = std::min(n, part_elements(operation, rank_) - begin);
  if (own <= 0) return;
  for (Index part = 0; part < input_parts(operation, size_); ++part)
    std::memcpy(to + part * n * size,
                static_cast<std::byte const*>(input_of(operation)) + (part * operation.count + begin) * size,
                static_cast<std::size_t>(own * size));
}

LOCKSTEP_INLINE void Transfer::sum_scalars(CollectiveOperation const& operation, std::uint32_t slot) {
  if (operation.piggybacked_scalars.empty()) return;
  for (int r = 0; r < size_; ++r) input(r) = memory_->block(r).slot[slot].scalars.data();
  outputs_[0] = operation.piggybacked_scalars.data();
  reduce_range(Reduction::sum, ElementType::float64, inputs_.data(), size_, outputs_.data(), 1, 0,
               std::ssize(operation.piggybacked_scalars));
}

LOCKSTEP_INLINE void Transfer::copy(CollectiveOperation const& operation, Index begin, Index n) {
  auto const size = element_bytes(operation);
  auto* out = static_cast<std::byte*>(operation.data) + begin * size;
  if (operation.collective == Collective::broadcast) {
    if (rank_ != operation.root) copy_part(out, input(operation.root), n * size);
  } else if (operation.collective == Collective::all_gather) {
    for (int r = 0; r < size_; out += part_elements(operation, r++) * size)
      copy_part(out, input(r), std::min(n, part_elements(operation, r) - begin) * size);
  }
}

LOCKSTEP_INLINE void Transfer::copy_part(std::byte* to, void const* from, Index n) noexcept {
  // An input may be in place in the output, where other ranks read it.
  if (n > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(n));
}

}}}  // namespace lockstep::comm::detail
