// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/lanes.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Calls f.template operator()<V>(column) for the columns that V covers: vectors first, then single columns. Data of
/// the columns thus stays in registers while f iterates over rows. Call it inside with_best_instructions.
template <class Scalar, std::size_t bytes, class Function>
[[gnu::always_inline]] inline void for_column_lanes(Vectors<bytes>, Index width, Function&& f) noexcept {
  Index c = 0;
  constexpr Index each = LanesOf<Scalar, bytes>::count;
  for (; c + each <= width; c += each) f.template operator()<Lanes<Scalar, bytes>>(c);
  for (; c < width; ++c) f.template operator()<Scalar>(c);
}

/// Calls f.template operator()<V>(column, first, last) for the columns that V covers and all rows in [begin, end). A
/// few rows with all their columns, which are adjacent in memory, precede the next few rows, so data of the columns is
/// stored and loaded between them.
template <class Scalar, std::size_t bytes, class Function>
[[gnu::always_inline]] inline void for_column_blocks(Vectors<bytes> vectors, Index width, Index begin, Index end,
                                                     Function const& f) noexcept {
  auto const each = std::max<Index>(1, 1024 / std::max<Index>(1, width));
  for (; begin < end; begin += each)
    for_column_lanes<Scalar>(
        vectors, width, [=]<class Lane>(Index c) __attribute__((always_inline)) {
          f.template operator()<Lane>(c, begin, std::min(begin + each, end));
        });
}

}}}  // namespace lockstep::kernel::detail
