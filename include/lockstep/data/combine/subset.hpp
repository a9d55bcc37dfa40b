// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/expect_optional_members.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Selected samples of a dataset: get(i) = dataset.get(indices[i]). Copies share the indices.
template <Dataset Source>
class Subset {
  static_assert(detail::RandomAccess<Source>,
                "Lockstep: Subset and hold_out choose among samples, but a stream (Streamed) yields samples in "
                "order; split the sources of the stream");
  static_assert(detail::expect_optional_members<Source>());

 public:
  /// @throws ConfigError if an index is not in [0, dataset.size()), with the index and its place
  Subset(Source dataset, std::vector<Index> indices)
      : dataset_(std::move(dataset)), indices_(std::make_shared<std::vector<Index> const>(std::move(indices))) {
    auto const size = static_cast<Index>(dataset_.size());
    for (auto const& index : *indices_)
      if (index < 0 || index >= size)
        throw ConfigError("Subset: index " + std::to_string(&index - indices_->data()) + " is " +
                          std::to_string(index) + ", and the dataset has " + std::to_string(size) +
                          " samples; give numbers from 0 to below that");
  }

  /// Returns the number of selected samples.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(indices_->size()); }
  /// Returns sample i of [0, size()).
  [[nodiscard]] decltype(auto) get(Index i) const { return dataset_.get(original(i)); }
  /// Returns sample i with the key's random numbers.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<Source> {
    return dataset_.get(original(i), key);
  }
  /// Returns the number of a sample in the whole dataset.
  [[nodiscard]] Index original(Index i) const noexcept { return (*indices_)[static_cast<std::size_t>(i)]; }
  /// Returns the lengths of sample i without reading it.
  [[nodiscard]] SampleExtent<SampleOf<Source>> extent(Index i) const requires detail::KnowsExtents<Source> {
    return dataset_.extent(original(i));
  }
  /// Reads sample i into its row of a batch.
  void read_into(Index i, Row<SampleOf<Source>> row) const requires detail::ReadsInPlace<Source> {
    dataset_.read_into(original(i), row);
  }
  /// Reads with a reader of the dataset.
  class Worker {
   public:
    /// As the dataset's `get`.
    [[nodiscard]] decltype(auto) get(Index i) { return reader_.get(original(i)); }
    /// As the dataset's `get` with a key.
    [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires DrawsSamples<Source> {
      return reader_.get(original(i), key);
    }
    /// As the dataset's `extent`.
    [[nodiscard]] SampleExtent<SampleOf<Source>> extent(Index i) requires detail::ReadsInPlace<Source> {
      return reader_.extent(original(i));
    }
    /// As the dataset's `read_into`.
    void read_into(Index i, Row<SampleOf<Source>> row) requires detail::ReadsInPlace<Source> {
      reader_.read_into(original(i), row);
    }

   private:
    friend Subset;
    explicit Worker(Subset const& of) : reader_(of.dataset_), indices_(of.indices_) {}
    [[nodiscard]] Index original(Index i) const noexcept { return (*indices_)[static_cast<std::size_t>(i)]; }

    detail::SampleReader<Source> reader_;
    std::shared_ptr<std::vector<Index> const> indices_;
  };
  /// Returns a reader for one worker.
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this); }
  /// Returns the sample's name in the whole dataset.
  [[nodiscard]] std::string name(Index i) const requires NamesSamples<Source> { return dataset_.name(original(i)); }
  /// Returns a hash of the dataset's size and fingerprint, and of the indices.
  [[nodiscard]] std::uint64_t fingerprint() const {
    auto hash = detail::size_and_fingerprint(dataset_);
    for (auto const index : *indices_) hash = mix(hash, static_cast<std::uint64_t>(index));
    return hash;
  }
  /// Returns the number of groups of the whole dataset.
  [[nodiscard]] Index groups() const requires GroupedDataset<Source> { return dataset_.groups(); }
  /// Returns the group of sample i in the whole dataset.
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<Source> { return dataset_.group(original(i)); }

 private:
  Source dataset_;
  std::shared_ptr<std::vector<Index> const> indices_;
};

}}}  // namespace lockstep::data
