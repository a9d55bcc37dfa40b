// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/subset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What `hold_out` gives.
template <Dataset D>
struct HeldOut {
  Subset<D> training;
  Subset<D> evaluation;
};

/// Parts a dataset by chance, by the seed alone: ceil(fraction * size) samples for evaluation, the rest for training,
/// both in the dataset's order. A dataset with groups is parted by group: ceil(fraction * those that have samples) of
/// them are held out whole.
/// @throws ConfigError when `fraction` is not within (0, 1)
/// @throws DataError when there are fewer than two samples, or groups, to part
template <Dataset D>
[[nodiscard]] HeldOut<D> hold_out(D const& dataset, double fraction, std::uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) {
    throw ConfigError("hold_out: the fraction is " + std::to_string(fraction) + "; it must be between 0 and 1");
  }
  Index units = dataset.size();
  std::vector<Index> number;  // of each group among those that have samples, -1 for the others
  if constexpr (GroupedDataset<D>) {
    number.assign(static_cast<std::size_t>(dataset.groups()), -1);
    for (Index i = 0; i < dataset.size(); ++i) number[static_cast<std::size_t>(dataset.group(i))] = 0;
    units = 0;
    for (auto& each : number)
      if (each == 0) each = units++;
  }
  if (units < 2) {
    throw DataError("hold_out: there is nothing to hold out of " + std::to_string(units) +
                    (GroupedDataset<D> ? " group" : " sample") +
                    "; give evaluation data of their own, or at least two");
  }
  constexpr double but_for_rounding = 1 - 1e-12;  // 0.07 of 100 are 7
  auto const wanted = static_cast<Index>(std::ceil(fraction * static_cast<double>(units) * but_for_rounding));
  KeyedPermutation const shuffled(units, mix(mix("lockstep.data.hold_out"), seed));
  std::vector<bool> held(static_cast<std::size_t>(units));
  for (Index i = 0; i < std::min(wanted, units - 1); ++i) held[static_cast<std::size_t>(shuffled(i))] = true;

  std::vector<Index> training, evaluation;
  for (Index i = 0; i < dataset.size(); ++i) {
    Index unit = i;
    if constexpr (GroupedDataset<D>) unit = number[static_cast<std::size_t>(dataset.group(i))];
    (held[static_cast<std::size_t>(unit)] ? evaluation : training).push_back(i);
  }
  return {{dataset, std::move(training)}, {dataset, std::move(evaluation)}};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
