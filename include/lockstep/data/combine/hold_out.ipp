// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/combine/hold_out.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE void check_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw ConfigError("hold_out: the fraction is " + shortest(fraction) + "; it must be between 0 and 1");
}

LOCKSTEP_COLD_INLINE void refuse_group(Index sample, Index group, Index groups) {
  throw DataError("hold_out: sample " + std::to_string(sample) + " is of group " + std::to_string(group) +
                  ", and the dataset has " + std::to_string(groups) + "; groups are numbered from 0");
}

LOCKSTEP_COLD_INLINE std::vector<bool> choose_held_out(Index units, double fraction, std::uint64_t key) {
  constexpr double rounding_tolerance = 1e-12;  // 0.07 of 100 is 7
  auto const held_count =
      static_cast<Index>(std::ceil(fraction * static_cast<double>(units) * (1 - rounding_tolerance)));
  KeyedPermutation const permutation(units, key);
  std::vector<bool> held(static_cast<std::size_t>(units));
  for (Index i = 0; i < std::min(held_count, units - 1); ++i) held[static_cast<std::size_t>(permutation(i))] = true;
  return held;
}

}}}  // namespace lockstep::data::detail
