// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/collate.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/detail/collate_column.hpp>
#include <lockstep/data/row.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Makes a batch of any aggregate: one column per member (column.hpp lists the kinds), variable-length members padded
/// at their ends to the longest of the batch. The columns lie in one slab, each aligned to 64 bytes; nothing is
/// allocated once the largest batch has been seen.
/// @cost one copy per byte, and the padding
/// @throws ConfigError from `plan` when `value` is not a value of a padded member's type
/// @throws DataError when a sample's length is not the announced one
struct PadCollate {
  /// What stands where a sample is shorter than the longest, and for an absent optional.
  double value = 0;

  template <class D, class Space>
  using Batch = Columns<SampleOf<D>, Space>;

  /// Fixes the layout of a batch; its memory is taken from `slab`, which is rewound.
  template <class Sample>
  [[nodiscard]] Columns<Sample, HostSpace> plan(BatchPlan<Sample> const& plan, memory::Scratch<>& slab) const {
    auto const rows = static_cast<Index>(plan.positions.size());
    Columns<Sample, HostSpace> batch(rows, {plan.positions.data(), {rows}}, plan.epoch);
    slab.rewind();
    detail::Lengths<Sample> lengths{plan.extents};
    detail::lay_out(batch, rows, lengths, slab, value);
    return batch;
  }

  /// Copies a sample into its row. Rows may be written at the same time.
  template <class Sample>
  void row(Columns<Sample, HostSpace> const& batch, Index row, Sample const& sample) const {
    detail::pad(batch, row, value);
    detail::put(batch, row, sample);
  }

  /// A row for a dataset to fill: padded, the rest as it was.
  template <class Sample>
  [[nodiscard]] Row<Sample> open_row(Columns<Sample, HostSpace> const& batch, Index row) const {
    detail::pad(batch, row, value);
    return {batch, row};
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
