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

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(indices_->size()); }
  [[nodiscard]] decltype(auto) get(Index i) const { return dataset_.get(original(i)); }
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<Source> {
    return dataset_.get(original(i), key);
  }
  /// Returns the number of a sample in the whole dataset.
  [[nodiscard]] Index original(Index i) const noexcept { return (*indices_)[static_cast<std::size_t>(i)]; }
  [[nodiscard]] SampleExtent<SampleOf<Source>> extent(Index i) const requires detail::KnowsExtents<Source> {
    return dataset_.extent(original(i));
  }
  void read_into(Index i, Row<SampleOf<Source>> row) const requires detail::ReadsInPlace<Source> {
    dataset_.read_into(original(i), row);
  }
  /// Reads with a reader of the dataset.
  class Worker {
   public:
    [[nodiscard]] decltype(auto) get(Index i) { return reader_.get(original(i)); }
    [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires DrawsSamples<Source> {
      return reader_.get(original(i), key);
    }
    [[nodiscard]] SampleExtent<SampleOf<Source>> extent(Index i) requires detail::ReadsInPlace<Source> {
      return reader_.extent(original(i));
    }
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
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this); }
  [[nodiscard]] std::string name(Index i) const requires NamesSamples<Source> { return dataset_.name(original(i)); }
  [[nodiscard]] std::uint64_t fingerprint() const {
    auto hash = detail::size_and_fingerprint(dataset_);
    for (auto const index : *indices_) hash = mix(hash, static_cast<std::uint64_t>(index));
    return hash;
  }
  [[nodiscard]] Index groups() const requires GroupedDataset<Source> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<Source> { return dataset_.group(original(i)); }

 private:
  Source dataset_;
  std::shared_ptr<std::vector<Index> const> indices_;
};

}}}  // namespace lockstep::data
