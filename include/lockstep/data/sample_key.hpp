// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Key of a sample's random numbers: its position in the epoch's order, never a worker, rank or thread. A dataset that
/// draws numbers, for example for augmentation, offers `get(i, key)` in addition to `get(i)`. The loader calls `get(i,
/// key)`.
struct SampleKey {
  std::uint64_t seed = 0;  ///< DataLoaderOptions::seed
  Index epoch = 0;         ///< from 0
  Index position = 0;      ///< place in the epoch's order, from 0

  /// Returns a separate generator for each name: `key.random("crop")(counter)`.
  [[nodiscard]] constexpr Philox random(std::string_view stage) const noexcept {
    return Philox(mix(mix(stage), seed, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position)));
  }
};

}}}  // namespace lockstep::data
