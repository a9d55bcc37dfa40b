// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Visits the slots of a layout in runs of one kind within one sequence. Calls tokens(row, t, slot, count) for slots
/// with tokens t, t + 1, ... of sequence `row`, and padding(slot, count) for padding. The pool's threads share the runs
/// in ranges of a fixed number of slots.
template <class Tokens, class Padding>
void for_token_runs(ThreadPool& pool, SequenceLayout<HostSpace> const& layout, Tokens const& tokens,
                    Padding const& padding) {
  constexpr Index slots_per_task = 64;
  pool.for_ranges(layout.slots, slots_per_task, [&](Index begin, Index end) {
    for (auto row = layout.row_of(begin); begin < end; ++row) {
      auto const first = layout.start(row), border = first + layout.tokens(row);
      if (begin < border) {
        auto const count = std::min(border, end) - begin;
        tokens(row, begin - first, begin, count);
        begin += count;
      }
      if (auto const rest = std::min(layout.end(row), end); begin < rest) {
        padding(begin, rest - begin);
        begin = rest;
      }
    }
  });
}

}}}  // namespace lockstep::kernel::detail
