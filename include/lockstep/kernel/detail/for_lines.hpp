// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Calls f(row, depth, height, line) for each line of a tensor [rows, extent…, channels], on the threads of the pool.
template <class Function>
void for_lines(memory::Stream<HostSpace> stream, Index rows, Extents<3> const& extent, Index channels,
               Function const& f) {
  Index const lines = extent[0] * extent[1];
  stream.pool().for_ranges(rows * lines, std::max<Index>(1, 8192 / std::max<Index>(1, extent[2] * channels)),
                           [=](Index begin, Index end) {
                             with_best_instructions([=] {
                               for (Index i = begin; i < end; ++i)
                                 f(i / lines, i % lines / extent[1], i % extent[1], i);
                             });
                           });
}

}}}  // namespace lockstep::kernel::detail
