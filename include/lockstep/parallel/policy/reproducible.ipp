// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/policy/reproducible.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_COLD_INLINE std::string shard_count_error(int shards, int devices) {
  auto const nearest = [](int n) {
    auto const below = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
    return n - below <= 2 * below - n ? below : 2 * below;
  };
  if (shards < 1 || !std::has_single_bit(static_cast<unsigned>(shards)))
    return "the number of shards must be a power of two; the nearest is " +
           std::to_string(nearest(std::max(shards, 1)));
  if (devices < 1 || shards % devices == 0) return "";
  return "the number of ranks or devices, " + std::to_string(devices) +
         ", must divide the number of shards; the nearest that does is " +
         std::to_string(std::min(shards, nearest(devices)));
}

}}}  // namespace lockstep::parallel
