// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/detail/samples_by_class.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE void check_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw ConfigError("hold_out: the fraction is " + shortest(fraction) + "; it must be between 0 and 1");
}

LOCKSTEP_COLD_INLINE void refuse_group(Index sample, Index group, Index groups) {
  throw DataError("hold_out: sample " + std::to_string(sample) + " is of group " + std::to_string(group) +
                  ", and the dataset has " + std::to_string(groups) + "; groups are numbered from 0");
}

/// Calls f(unit) for each unit that is held out.
template <class Function>
void for_held_out(Index units, double fraction, std::uint64_t key, Function const& f) {
  constexpr double rounding_tolerance = 1e-12;  // 0.07 of 100 is 7
  auto const held_count =
      static_cast<Index>(std::ceil(fraction * static_cast<double>(units) * (1 - rounding_tolerance)));
  KeyedPermutation const permutation(units, key);
  for (Index i = 0; i < std::min(held_count, units - 1); ++i) f(static_cast<std::size_t>(permutation(i)));
}

LOCKSTEP_COLD_INLINE std::vector<std::uint8_t> choose_held_out(Index units, char const* what, double fraction,
                                                               std::uint64_t seed) {
  if (units < 2)
    throw DataError("hold_out: nothing can be held out of " + std::to_string(units) + " " + what +
                    "; give separate evaluation data, or at least two");
  std::vector<std::uint8_t> held(static_cast<std::size_t>(units));
  for_held_out(units, fraction, mix(mix("lockstep.data.hold_out"), seed), [&](std::size_t unit) { held[unit] = 1; });
  return held;
}

LOCKSTEP_COLD_INLINE std::vector<std::uint8_t> choose_held_out_by_class(std::vector<std::int32_t> const& classes,
                                                                        Index samples, double fraction,
                                                                        std::uint64_t seed) {
  std::vector<std::uint8_t> held(classes.size());
  std::size_t most = 0;
  for (auto const& members : samples_by_class("hold_out", classes, samples)) {
    auto const key = mix(mix("lockstep.data.hold_out"), seed, static_cast<std::uint64_t>(members.front()));
    for_held_out(std::ssize(members), fraction, key,
                 [&](std::size_t unit) { held[static_cast<std::size_t>(members[unit])] = 1; });
    most = std::max(most, members.size());
  }
  if (most < 2)
    throw DataError(
        "hold_out: no class has two samples, one for each part; leave the classes out, or give separate evaluation "
        "data");
  return held;
}

}}}  // namespace lockstep::data::detail
