// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/detail/block_squares.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

LOCKSTEP_COLD_INLINE BlockSquares<HostSpace>::BlockSquares(Index size) : size_(size) {}

LOCKSTEP_INLINE void BlockSquares<HostSpace>::begin(Stream) {
  sums_.assign(static_cast<std::size_t>(Squares::blocks_of(size_)), 0.0);
}

}}}  // namespace lockstep::parallel::detail
