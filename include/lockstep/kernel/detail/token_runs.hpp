// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Walks over rows of `length` slots each, of which the first lengths[row] hold tokens (all of them where `lengths` is
/// empty), in runs of one kind within one row: tokens(row, slot, at, count) and padding(at, count), where `at` is
/// row * length + slot. Runs are spread over the pool in ranges of a fixed number of slots.
template <class Tokens, class Padding>
void for_token_runs(ThreadPool& pool, Index rows, Index length, TensorView<std::int32_t const, 1, HostSpace> lengths,
                    Tokens const& tokens, Padding const& padding) {
  constexpr Index slots_per_task = 32;
  pool.for_ranges(rows * length, slots_per_task, [&](Index begin, Index end) {
    while (begin < end) {
      auto const row = begin / length, slot = begin % length;
      auto const row_tokens = lengths.empty() ? length : static_cast<Index>(lengths.data[row]);
      auto const border = slot < row_tokens ? row_tokens : length;
      auto const count = std::min(border - slot, end - begin);
      if (slot < row_tokens) {
        tokens(row, slot, begin, count);
      } else {
        padding(begin, count);
      }
      begin += count;
    }
  });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
