// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <lockstep/data/collate/detail/collate_options.hpp>
#include <lockstep/data/collate/slab.hpp>
#include <lockstep/data/row.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <Number T, std::size_t N, class Sample>
void lay_out(RaggedColumn<T, HostSpace, N>& column, Index rows, Lengths<Sample>& lengths, Slab& slab,
             CollateOptions const& options) {
  auto* const offsets = slab.template take_elements<Index>(rows + 1);
  offsets[0] = 0;
  lengths.take(options, [&](Index row, Index length) {
    offsets[row + 1] = offsets[row] + length;
    column.longest = std::max(column.longest, length);
  });
  column.offsets = {offsets, {rows + 1}};
  column.values.extent[0] = offsets[rows];
  if constexpr (N != 0) column.values.extent[1] = static_cast<Index>(N);
  column.values.data = slab.template take_elements<T>(column.values.size());
}

template <Number T, std::size_t N>
void finish(RaggedColumn<T, HostSpace, N>& column, Slab& slab, CollateOptions const& options) {
  if constexpr (std::same_as<T, std::int32_t> && N == 0) {
    if (options.segment_plans == SegmentPlans::none) return;
    auto& plan = slab.take_segment_plan();
    plan.build(column.values.span());
    column.plan = &plan;
  }
}

}}}  // namespace lockstep::data::detail
