// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/detail/collate_column.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/row.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Makes a batch of any aggregate without padding: variable-length members are concatenated and indexed by offsets
/// (RaggedColumn). All other members as with PadCollate. The columns are in one slab, each aligned to 64 bytes.
/// Allocates nothing once the largest batch has been seen.
/// @cost one copy per byte
/// @throws ConfigError from `plan` if `value` is not a value of an optional member's type
/// @throws DataError if a sample's length differs from the announced length
struct RaggedCollate {
  double value = 0;                                 ///< value of absent optionals
  SegmentPlans segment_plans = SegmentPlans::none;  ///< `column.plan` for sequences of std::int32_t

  template <class Source, class Space>
  using Batch = Columns<SampleOf<Source>, Space, Sequences::ragged>;  ///< columns with concatenated sequences

  /// Lays out a batch in memory of `slab`, which is rewound.
  template <class Sample>
  [[nodiscard]] Columns<Sample, HostSpace, Sequences::ragged> plan(BatchPlan<Sample> const& plan, Slab& slab) const {
    return detail::plan_columns<Sequences::ragged>(plan, slab, column_options());
  }

  /// Copies a sample into its row. Several threads may write different rows at once.
  template <class Sample>
  void row(Columns<Sample, HostSpace, Sequences::ragged> const& batch, Index row, Sample const& sample) const {
    auto const options = column_options();
    detail::pad(batch, row, options);
    detail::put(batch, row, sample, options);
  }

  /// Returns a row for a dataset to fill.
  template <class Sample>
  [[nodiscard]] Row<Sample> open_row(Columns<Sample, HostSpace, Sequences::ragged> const& batch, Index row) const {
    detail::pad(batch, row, column_options());
    return {batch, row};
  }

  /// Adds segment plans, which need all rows.
  template <class Sample>
  void finish(Columns<Sample, HostSpace, Sequences::ragged>& batch, Slab& slab) const {
    detail::finish(batch, slab, column_options());
  }

 private:
  [[nodiscard]] detail::CollateOptions column_options() const noexcept {
    return {.collate_name = "RaggedCollate", .value = value, .segment_plans = segment_plans};
  }
};

}}}  // namespace lockstep::data
