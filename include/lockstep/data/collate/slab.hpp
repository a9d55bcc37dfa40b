// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include <lockstep/core/segment_plan.hpp>
#include <lockstep/data/detail/zero_runs.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The memory of one batch, reused by later batches: a bump arena, and segment plans with their storage.
class Slab : public memory::Scratch<memory::AnyHostResource> {
 public:
  /// The first block is one page: a loader has many slabs, and batches may be small.
  explicit Slab(memory::AnyHostResource resource = {});
  ~Slab();                           ///< releases the memory
  Slab(Slab&&) noexcept;             ///< takes over the memory and the plans
  Slab& operator=(Slab&&) noexcept;  ///< takes over the memory and the plans

  /// Returns a plan to build, valid until `rewind`. Reuses the storage of an earlier batch's plan.
  [[nodiscard]] SegmentPlan& take_segment_plan();
  /// Returns the record of zero bytes in this memory, for the collate.
  [[nodiscard]] detail::ZeroRuns& zero_runs() noexcept { return zero_runs_; }

  /// Releases all memory and plans for the next batch, which reuses them. Earlier batches become invalid.
  void rewind();

 private:
  std::vector<std::unique_ptr<SegmentPlan>> plans_;  // by pointer: columns refer to them
  std::size_t taken_ = 0;
  detail::ZeroRuns zero_runs_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/collate/slab.ipp>
#endif
