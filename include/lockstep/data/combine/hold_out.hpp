// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/combine/subset.hpp>
#include <lockstep/data/dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Result of `hold_out`, or one fold of `k_fold`.
template <Dataset Source>
struct HeldOut {
  Subset<Source> training;    ///< the larger or remaining part
  Subset<Source> evaluation;  ///< the held-out part
};

namespace detail {
void check_fraction(double fraction);
/// @throws DataError for a sample's group that the dataset does not have
[[noreturn]] void refuse_group(Index sample, Index group, Index groups);

/// Chooses which of `units` units are held out: ceil(fraction * units), but never all. Returns 1 for these, else 0.
/// @throws DataError if there are fewer than two; `what` they are, such as "sample"
[[nodiscard]] std::vector<std::uint8_t> choose_held_out(Index units, char const* what, double fraction,
                                                        std::uint64_t seed);
/// Chooses which of `samples` samples are held out, likewise for each class.
/// @throws DataError if no class has two samples
[[nodiscard]] std::vector<std::uint8_t> choose_held_out_by_class(std::vector<std::int32_t> const& classes,
                                                                 Index samples, double fraction, std::uint64_t seed);

template <Dataset Source, class IsHeld>
HeldOut<Source> split_by(Source const& dataset, IsHeld const& is_held) {
  std::vector<Index> training, evaluation;
  for (Index i = 0; i < dataset.size(); ++i) (is_held(i) ? evaluation : training).push_back(i);
  return {{dataset, std::move(training)}, {dataset, std::move(evaluation)}};
}
}  // namespace detail

/// Splits a dataset at random, determined by the seed alone: ceil(fraction * size) samples for evaluation, the rest for
/// training. Both parts keep the dataset's order. A dataset with groups is split by group: ceil(fraction * groups)
/// whole groups are held out, not counting groups without samples.
/// @throws ConfigError unless 0 < fraction < 1
/// @throws DataError if there are fewer than two samples, or groups, to split, or a sample's group is not one of the
/// dataset's groups
template <Dataset Source>
[[nodiscard]] HeldOut<Source> hold_out(Source const& dataset, double fraction, std::uint64_t seed) {
  detail::check_fraction(fraction);
  Index units = dataset.size();
  std::vector<Index> number;  // of each group among those with samples; -1 without
  if constexpr (GroupedDataset<Source>) {
    number.assign(static_cast<std::size_t>(dataset.groups()), -1);
    for (Index i = 0; i < dataset.size(); ++i) {
      Index const group = dataset.group(i);
      if (group < 0 || group >= std::ssize(number)) detail::refuse_group(i, group, std::ssize(number));
      number[static_cast<std::size_t>(group)] = 0;
    }
    units = 0;
    for (auto& each : number)
      if (each == 0) each = units++;
  }
  auto const held = detail::choose_held_out(units, GroupedDataset<Source> ? "group" : "sample", fraction, seed);
  return detail::split_by(dataset, [&](Index i) {
    if constexpr (GroupedDataset<Source>)
      return held[static_cast<std::size_t>(number[static_cast<std::size_t>(dataset.group(i))])] != 0;
    else
      return held[static_cast<std::size_t>(i)] != 0;
  });
}

/// Splits each class separately (stratified), so that both parts have rare classes too: holds out ceil(fraction * its
/// samples). A class of one sample is used for training. `classes` holds the class of each sample, as for
/// ClassBalancedSampler. Rejects datasets with groups, which it would divide.
/// @throws ConfigError unless 0 < fraction < 1, if classes and samples differ in number, or if a class is negative
/// @throws DataError if no class has two samples
template <Dataset Source>
requires(!GroupedDataset<Source>)
    [[nodiscard]] HeldOut<Source> hold_out(Source const& dataset, double fraction, std::uint64_t seed,
                                           std::vector<std::int32_t> const& classes) {
  detail::check_fraction(fraction);
  auto const held = detail::choose_held_out_by_class(classes, dataset.size(), fraction, seed);
  return detail::split_by(dataset, [&](Index i) { return held[static_cast<std::size_t>(i)] != 0; });
}
/// Rejects a dataset with groups at compile time.
template <GroupedDataset Source>
HeldOut<Source> hold_out(Source const& dataset, double fraction, std::uint64_t seed, std::vector<std::int32_t> const&) {
  static_assert(!GroupedDataset<Source>,
                "Lockstep: hold_out per class would split the dataset's groups; leave the classes out, and "
                "groups are held out whole, or take a fold of k_fold, which balances classes and keeps groups whole");
  return hold_out(dataset, fraction, seed);
}

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/combine/hold_out.ipp>
#endif
