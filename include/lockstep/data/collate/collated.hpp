// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <numeric>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/slab.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Collates a few samples into a batch without a loader, and owns its memory. Row r is sample r, at position first + r.
/// Dropout is keyed on the position, so ranks and devices that make batches themselves need different values of
/// `first`.
/// @throws any exception of the collate
template <class CollateType, class Sample>
class Collated {
  using Dataset = InMemoryDataset<Sample>;
  static_assert(Collate<CollateType, Dataset>,
                "Lockstep: the first argument is no collate for these samples; see docs/reference/collate.md");

 public:
  using Batch = typename CollateType::template Batch<Dataset, HostSpace>;

  Collated(CollateType const& collate, std::vector<Sample> const& samples, Index first = 0)
      : positions_(samples.size()) {
    std::iota(positions_.begin(), positions_.end(), first);
    for (auto const& sample : samples) extents_.push_back(extent_of(sample));
    batch_ = collate.plan(BatchPlan<Sample>{extents_, positions_, 0}, slab_);
    for (std::size_t row = 0; row < samples.size(); ++row) collate.row(batch_, static_cast<Index>(row), samples[row]);
    if constexpr (FinishesBatches<CollateType, Dataset>) collate.finish(batch_, slab_);
  }
  // Moving is safe: the batch refers to the vectors' memory, which moves with them.
  Collated(Collated&&) noexcept = default;
  Collated& operator=(Collated&&) noexcept = default;

  /// Returns the batch. Valid as long as this object.
  [[nodiscard]] Batch const& batch() const noexcept { return batch_; }

 private:
  std::vector<Index> positions_;
  std::vector<SampleExtent<Sample>> extents_;
  Slab slab_;
  Batch batch_;
};

}}}  // namespace lockstep::data
