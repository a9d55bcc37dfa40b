// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/slab.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Collates a few samples into a batch without a loader, and owns its memory. Row r is sample r, at position first + r.
/// Dropout is keyed on the position, so ranks and devices that make batches themselves need different values of
/// `first`. `assign` reuses the memory for other samples.
/// @throws any exception of the collate
template <class CollateType, class Sample, class Dataset = InMemoryDataset<Sample>>
class Collated {
  static_assert(Collate<CollateType, Dataset>,
                "Lockstep: the first argument is no collate for these samples; see docs/reference/collate.md");

 public:
  using Batch = typename CollateType::template Batch<Dataset, HostSpace>;  ///< type of the batch

  /// Makes a batch of the samples, in order.
  Collated(CollateType const& collate, std::vector<Sample> const& samples, Index first = 0) : collate_(collate) {
    assign(samples, first);
  }
  /// Plans a batch of samples of these lengths whose numbers are zero.
  Collated(CollateType const& collate, std::vector<SampleExtent<Sample>> extents, Index first = 0)
      : collate_(collate), extents_(std::move(extents)) {
    plan(first);  // new memory is zero
  }
  // Moving is safe: the batch refers to the vectors' memory, which moves with them.
  /// Takes over the batch; references to it stay valid.
  Collated(Collated&&) noexcept = default;
  /// Takes over the batch; references to it stay valid.
  Collated& operator=(Collated&&) noexcept = default;

  /// Replaces the samples, as if the batch was made of these. References to the batch see them. Allocates nothing if
  /// the batch is no larger than the last two were, so a program that predicts again and again keeps one.
  /// @throws any exception of the collate; the batch then has no rows
  void assign(std::span<Sample const> samples, Index first = 0) {
    extents_.clear();
    for (auto const& sample : samples) extents_.push_back(extent_of(sample));
    plan(first);
    try {
      for (std::size_t row = 0; row < samples.size(); ++row)
        collate_.row(batch_, static_cast<Index>(row), samples[row]);
      if constexpr (FinishesBatches<CollateType, Dataset>) collate_.finish(batch_, slab_);
    } catch (...) {
      batch_ = Batch();
      throw;
    }
  }
  /// Replaces the samples by one.
  void assign(Sample const& sample, Index first = 0) { assign(std::span<Sample const>(&sample, 1), first); }

  /// Returns the batch. Valid as long as this object.
  [[nodiscard]] Batch const& batch() const noexcept { return batch_; }

 private:
  /// Lays out the batch of the extents.
  void plan(Index first) {
    batch_ = Batch();  // the collate may free the memory that it refers to
    positions_.resize(extents_.size());
    std::iota(positions_.begin(), positions_.end(), first);
    batch_ = collate_.plan(BatchPlan<Sample>{extents_, positions_, 0}, slab_);
  }

  CollateType collate_;
  std::vector<Index> positions_;
  std::vector<SampleExtent<Sample>> extents_;
  Slab slab_;
  Batch batch_;
};

}}}  // namespace lockstep::data
