// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Samples by number: `size()` and `get(i)` for i in [0, size()). Datasets are cheap handles (a copy shares the data)
/// and `get` is called from several threads at once. A dataset that holds its samples returns a reference: what is
/// returned by value is copied once more into the batch.
template <class D>
concept Dataset = std::copy_constructible<D> && requires(D const& dataset, Index i) {
  { dataset.size() } -> std::convertible_to<Index>;
  dataset.get(i);
  requires !std::is_void_v<decltype(dataset.get(i))>;
};

/// What `get` yields, without reference.
template <class D>
using SampleOf = std::remove_cvref_t<decltype(std::declval<D const&>().get(Index{}))>;

/// A dataset whose samples have names that mean something to a person, such as paths: they stand in messages.
template <class D>
concept NamesSamples = Dataset<D> && requires(D const& dataset, Index i) {
  { dataset.name(i) } -> std::convertible_to<std::string>;
};

/// A dataset whose samples are drawn: `get(i, key)` is `get(i)` with random numbers from the key (augmentation).
template <class D>
concept DrawsSamples = Dataset<D> && requires(D const& dataset, Index i, SampleKey const& key) {
  { dataset.get(i, key) } -> std::same_as<decltype(dataset.get(i))>;
};

/// A dataset that reads with something that threads cannot share, such as a decoder: `worker()` makes a reader, which
/// the loader keeps for each of its workers and calls, not const, in the dataset's place.
template <class D>
concept HasWorkers = Dataset<D> && requires(D const& dataset, Index i) {
  { dataset.worker().get(i) } -> std::same_as<decltype(dataset.get(i))>;
};

/// A dataset that knows whether it is the one of an earlier run: a number that changes when its samples do.
template <class D>
concept HasFingerprint = Dataset<D> && requires(D const& dataset) {
  { dataset.fingerprint() } -> std::same_as<std::uint64_t>;
};

/// Samples that belong together (the windows of one file, the sentences of one document) and must not be parted between
/// training and evaluation: `group(i)` in [0, groups()).
template <class D>
concept GroupedDataset = Dataset<D> && requires(D const& dataset, Index i) {
  { dataset.groups() } -> std::convertible_to<Index>;
  { dataset.group(i) } -> std::convertible_to<Index>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
