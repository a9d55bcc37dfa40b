// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/combine/subset.hpp>
#include <lockstep/data/dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

namespace detail {
/// Returns the fold of each sample.
/// @param groups the group of each sample; empty: each sample is a group of its own
/// @param classes the class of each sample; empty: all samples are of one class
[[nodiscard]] std::vector<Index> assign_folds(Index samples, Index folds, std::uint64_t seed,
                                              std::vector<Index> const& groups,
                                              std::vector<std::int32_t> const& classes);
}  // namespace detail

/// Divides a dataset into `folds` parts for cross-validation. Element k of the result evaluates on part k and trains on
/// the others. Equal seeds give equal parts, which keep the dataset's order.
///
/// Without groups and classes, the parts' sizes differ by at most one sample. If the dataset has groups, all samples of
/// a group are in one part. `classes` holds the class of each sample: parts then have nearly equal shares of each class
/// (stratified). Groups are assigned one by one, large ones first, each to the part that has least of its classes.
/// @throws ConfigError unless folds is at least 2, if classes and samples differ in number, or if a class is negative
/// @throws DataError if there are fewer samples, or groups with samples, than folds
/// @source StratifiedGroupKFold of scikit-learn, which has another measure of balance
template <Dataset Source>
[[nodiscard]] std::vector<HeldOut<Source>> k_fold(Source const& dataset, Index folds, std::uint64_t seed,
                                                  std::vector<std::int32_t> const& classes = {}) {
  auto const size = static_cast<Index>(dataset.size());
  std::vector<Index> groups;
  if constexpr (GroupedDataset<Source>)
    for (Index i = 0; i < size; ++i) groups.push_back(dataset.group(i));
  auto const fold_of = detail::assign_folds(size, folds, seed, groups, classes);
  std::vector<HeldOut<Source>> all;
  for (Index fold = 0; fold < folds; ++fold)
    all.push_back(detail::split_by(dataset, [&](Index i) { return fold_of[static_cast<std::size_t>(i)] == fold; }));
  return all;
}

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/combine/k_fold.ipp>
#endif
