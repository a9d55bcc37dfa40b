// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <numeric>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/slab.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Collates a few samples into a batch without a loader, and owns its memory. Row r is sample r, at position first + r.
/// Dropout is keyed on the position, so ranks and devices that make batches themselves need different values of
/// `first`.
/// @throws any exception of the collate
template <class CollateType, class Sample, class Dataset = InMemoryDataset<Sample>>
class Collated {
  static_assert(Collate<CollateType, Dataset>,
                "Lockstep: the first argument is no collate for these samples; see docs/reference/collate.md");

 public:
  using Batch = typename CollateType::template Batch<Dataset, HostSpace>;  ///< type of the batch

  /// Makes a batch of the samples, in order.
  Collated(CollateType const& collate, std::vector<Sample> const& samples, Index first = 0)
      : Collated(collate, extents_of(samples), first) {
    for (std::size_t row = 0; row < samples.size(); ++row) collate.row(batch_, static_cast<Index>(row), samples[row]);
    if constexpr (FinishesBatches<CollateType, Dataset>) collate.finish(batch_, slab_);
  }
  /// Plans a batch of samples of these lengths whose numbers are zero.
  Collated(CollateType const& collate, std::vector<SampleExtent<Sample>> extents, Index first = 0)
      : positions_(extents.size()), extents_(std::move(extents)) {
    std::iota(positions_.begin(), positions_.end(), first);
    batch_ = collate.plan(BatchPlan<Sample>{extents_, positions_, 0}, slab_);  // new memory is zero
  }
  // Moving is safe: the batch refers to the vectors' memory, which moves with them.
  /// Takes over the batch; references to it stay valid.
  Collated(Collated&&) noexcept = default;
  /// Takes over the batch; references to it stay valid.
  Collated& operator=(Collated&&) noexcept = default;

  /// Returns the batch. Valid as long as this object.
  [[nodiscard]] Batch const& batch() const noexcept { return batch_; }

 private:
  static std::vector<SampleExtent<Sample>> extents_of(std::vector<Sample> const& samples) {
    std::vector<SampleExtent<Sample>> out;
    out.reserve(samples.size());
    for (auto const& sample : samples) out.push_back(extent_of(sample));
    return out;
  }

  std::vector<Index> positions_;
  std::vector<SampleExtent<Sample>> extents_;
  Slab slab_;
  Batch batch_;
};

}}}  // namespace lockstep::data
