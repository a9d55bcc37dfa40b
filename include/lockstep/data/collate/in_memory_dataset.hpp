// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/read_sample.hpp>
#include <lockstep/data/detail/sample_hash.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Samples held in memory: from a vector, or all samples of another dataset, read once. `get` returns a reference, so
/// that a collate copies each byte once. Copies share the samples. Thread-safe: nothing changes after construction.
/// Groups of another dataset are lost: call `hold_out` first.
template <class Sample>
class InMemoryDataset {
 public:
  /// Takes over the samples.
  explicit InMemoryDataset(std::vector<Sample> samples)
      : samples_(std::make_shared<std::vector<Sample> const>(std::move(samples))) {}

  /// Reads every sample of `dataset`, in order.   @throws DataError for a sample that cannot be made, by its name
  template <class Source>
  requires(!std::derived_from<Source, InMemoryDataset> && Dataset<Source>)  // the first part keeps the concept from
                                                                            // depending on itself
      explicit InMemoryDataset(Source const& dataset)
      : InMemoryDataset(read(dataset)) {}

  /// Returns the number of samples.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(samples_->size()); }
  /// Returns sample i of [0, size()), by reference.
  [[nodiscard]] Sample const& get(Index i) const noexcept { return (*samples_)[static_cast<std::size_t>(i)]; }
  /// Returns a hash of every byte of every sample. Available if samples consist of numbers, enums, std::string,
  /// std::array, std::optional, std::vector and nested aggregates. For others, derive a dataset that has a fingerprint;
  /// without one, a run can resume with different samples.
  /// @cost a pass over all samples; a DataLoader calls it once, when it makes or resumes its first state
  [[nodiscard]] std::uint64_t fingerprint() const noexcept requires detail::HasContent<Sample> {
    std::uint64_t hash = samples_->size();
    for (Sample const& sample : *samples_) hash = detail::hash_on(hash, sample);
    return hash;
  }

 private:
  template <Dataset Source>
  static std::vector<Sample> read(Source const& dataset) {
    std::vector<Sample> samples;
    samples.reserve(static_cast<std::size_t>(dataset.size()));
    for (Index i = 0; i < dataset.size(); ++i) samples.push_back(detail::read_sample("InMemoryDataset", dataset, i));
    return samples;
  }

  std::shared_ptr<std::vector<Sample> const> samples_;
};

/// Takes the sample type from the vector.
template <class Sample>
InMemoryDataset(std::vector<Sample>) -> InMemoryDataset<Sample>;
/// Takes the sample type from the dataset.
template <Dataset Source>
InMemoryDataset(Source const&) -> InMemoryDataset<SampleOf<Source>>;

}}}  // namespace lockstep::data
