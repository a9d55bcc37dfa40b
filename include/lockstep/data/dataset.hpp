// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <lockstep/core/index.hpp>

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

/// Samples that belong together (the windows of one file, the sentences of one document) and must not be parted between
/// training and evaluation: `group(i)` in [0, groups()).
template <class D>
concept GroupedDataset = Dataset<D> && requires(D const& dataset, Index i) {
  { dataset.groups() } -> std::convertible_to<Index>;
  { dataset.group(i) } -> std::convertible_to<Index>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
