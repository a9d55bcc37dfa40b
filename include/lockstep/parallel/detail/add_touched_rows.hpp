// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include <lockstep/kernel/embedding/touched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Adds the rows of `words`, a bit per row, to a table's touched rows, with zero gradients. Other replicas' gradients
/// of these rows can then be added.
inline void add_touched_rows(kernel::TouchedRows const& table, std::uint64_t const* words, float* gradients) {
  auto const mine = table.bits();
  for (std::size_t word = 0; word < mine.size(); ++word) {
    for (auto missing = words[word] & ~mine[word]; missing != 0; missing &= missing - 1) {
      auto const row = static_cast<Index>(word) * 64 + std::countr_zero(missing);
      std::fill_n(gradients + table.offset + row * table.width, table.width, 0.0f);
    }
    mine[word] |= words[word];
  }
}

}}}  // namespace lockstep::parallel::detail
