// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/expect_optional_members.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

// Operations that datasets made of other datasets forward to them.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Offers extents of samples that were not read.
template <class Source>
concept KnowsExtents = Dataset<Source> && requires(Source const& dataset, Index i) {
  { dataset.extent(i) } -> std::same_as<SampleExtent<SampleOf<Source>>>;
};

/// Offers extents and reads samples directly into rows. A collate may not support this.
template <class Source>
concept ReadsInPlace = KnowsExtents<Source> && Aggregate<SampleOf<Source>> &&
    requires(Source const& dataset, Index i, Row<SampleOf<Source>> row) {
  dataset.read_into(i, row);
};

/// Reads a sample with the key if the dataset draws samples, or else without.
/// @param reader a dataset, or a SampleReader of one
template <class Reader>
decltype(auto) get_with_key(Reader& reader, Index i, SampleKey const& key) {
  if constexpr (requires { reader.get(i, key); }) {
    return reader.get(i, key);
  } else {
    return reader.get(i);
  }
}

template <Dataset Source>
std::string sample_name(Source const& dataset, Index i) {
  if constexpr (NamesSamples<Source>) {
    return dataset.name(i);
  } else {
    return "sample " + std::to_string(i) + " of its part";
  }
}

/// Returns the name of a sample of one of several datasets.
template <Dataset Source>
std::string sample_name_in(Source const& dataset, Index i, std::size_t number) {
  if constexpr (NamesSamples<Source>) {
    return dataset.name(i);
  } else {
    return "sample " + std::to_string(i) + " of dataset " + std::to_string(number);
  }
}

/// Returns a hash of the size and, if there is one, the fingerprint.
template <Dataset Source>
std::uint64_t size_and_fingerprint(Source const& dataset) {
  auto const size = static_cast<std::uint64_t>(dataset.size());
  if constexpr (HasFingerprint<Source>) {
    return mix(size, dataset.fingerprint());
  } else {
    return mix(size);
  }
}

/// Base of datasets that have the samples of one other dataset in its order, changed or checked. Forwards everything
/// except how a sample is read.
template <Dataset Source>
class DatasetAdapter {
  static_assert(expect_optional_members<Source>());

 public:
  explicit DatasetAdapter(Source dataset) : dataset_(std::move(dataset)) {}
  [[nodiscard]] Index size() const { return dataset_.size(); }
  void rewind(Index epoch, Index position) const requires SequentialAccess<Source> { dataset_.rewind(epoch, position); }
  [[nodiscard]] Index lanes() const requires SequentialAccess<Source> { return dataset_.lanes(); }
  [[nodiscard]] std::string name(Index i) const requires NamesSamples<Source> { return dataset_.name(i); }
  [[nodiscard]] std::uint64_t fingerprint() const requires HasFingerprint<Source> { return dataset_.fingerprint(); }
  [[nodiscard]] Index groups() const requires GroupedDataset<Source> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<Source> { return dataset_.group(i); }

 protected:
  Source dataset_;
};

/// Worker of an adapter that reads samples with `read(reader, i)` or `read(reader, i, key)`, from the dataset or from a
/// reader of it. Valid while the adapter lives.
template <class Adapter, Dataset Source>
class AdapterWorker {
 public:
  AdapterWorker(Adapter const& adapter, Source const& dataset) : reader_(dataset), adapter_(&adapter) {}
  [[nodiscard]] decltype(auto) get(Index i) { return adapter_->read(reader_, i); }
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires DrawsSamples<Adapter> {
    return adapter_->read(reader_, i, key);
  }

 private:
  SampleReader<Source> reader_;
  Adapter const* adapter_;
};

}}}  // namespace lockstep::data::detail
