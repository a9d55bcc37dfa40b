// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/collate/slab.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE Slab::Slab(memory::AnyHostResource resource) : Scratch(resource, std::size_t{1} << 12) {}

LOCKSTEP_INLINE Slab::~Slab() = default;

LOCKSTEP_INLINE Slab::Slab(Slab&&) noexcept = default;

LOCKSTEP_INLINE Slab& Slab::operator=(Slab&&) noexcept = default;

LOCKSTEP_INLINE SegmentPlan& Slab::take_segment_plan() {
  if (taken_ == plans_.size()) plans_.push_back(std::make_unique<SegmentPlan>());
  return *plans_[taken_++];
}

LOCKSTEP_INLINE void Slab::rewind() {
  taken_ = 0;
  if (is_fragmented()) {
    zero_runs_.clear();
  } else {
    zero_runs_.advance();
  }
  memory::Scratch<memory::AnyHostResource>::rewind();
}

}}}  // namespace lockstep::data
