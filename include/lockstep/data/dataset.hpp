// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Samples by number: `size()` and `get(i)` for i in [0, size()). Datasets are cheap handles: a copy shares the data.
/// Several threads call `get` at once. A dataset that holds its samples returns a reference, because a returned value
/// is copied once more into the batch.
template <class Source>
concept Dataset = std::copy_constructible<Source> && requires(Source const& dataset, Index i) {
  { dataset.size() } -> std::convertible_to<Index>;
  dataset.get(i);
  requires !std::is_void_v<decltype(dataset.get(i))>;
};

/// The type that `get` returns, without reference.
template <class Source>
using SampleOf = std::remove_cvref_t<decltype(std::declval<Source const&>().get(Index{}))>;

/// A dataset whose samples have readable names, such as paths, for messages.
template <class Source>
concept NamesSamples = Dataset<Source> && requires(Source const& dataset, Index i) {
  { dataset.name(i) } -> std::convertible_to<std::string>;
};

/// A dataset whose samples are drawn: `get(i, key)` is `get(i)` with random numbers from the key (augmentation).
template <class Source>
concept DrawsSamples = Dataset<Source> && requires(Source const& dataset, Index i, SampleKey const& key) {
  { dataset.get(i, key) } -> std::same_as<decltype(dataset.get(i))>;
};

/// A dataset that reads with an object that threads cannot share, such as a decoder. `worker()` makes a reader. The
/// loader keeps a reader for each worker and calls its non-const functions instead of the dataset's.
template <class Source>
concept HasWorkers = Dataset<Source> && requires(Source const& dataset, Index i) {
  { dataset.worker().get(i) } -> std::same_as<decltype(dataset.get(i))>;
};

/// A dataset that can be compared with the dataset of an earlier run: the fingerprint changes when its samples change.
template <class Source>
concept HasFingerprint = Dataset<Source> && requires(Source const& dataset) {
  { dataset.fingerprint() } -> std::same_as<std::uint64_t>;
};

/// A dataset whose samples belong to groups, such as the windows of one file or the sentences of one document. A group
/// is never divided between training and evaluation: `group(i)` is in [0, groups()).
template <class Source>
concept GroupedDataset = Dataset<Source> && requires(Source const& dataset, Index i) {
  { dataset.groups() } -> std::convertible_to<Index>;
  { dataset.group(i) } -> std::convertible_to<Index>;
};

}}}  // namespace lockstep::data
