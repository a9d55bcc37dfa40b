// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/detail/collate_column.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/row.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Makes a batch of any aggregate: one column per member (column.hpp lists the kinds). Variable-length members are
/// padded to one length. The columns are in one slab, each aligned to 64 bytes. Allocates nothing once the largest
/// batch has been seen.
/// @cost one copy per byte, and writing the padding, except padding bytes that are zero since the previous batch
/// @throws ConfigError from `plan` if `value` is not a value of a padded member's type, or another option is out of
/// range
/// @throws DataError if a sample's length differs from the announced length, or is above `length`
struct PadCollate {
  /// Value of padding and of absent optionals.
  double value = 0;
  Index multiple = 1;  ///< rows are as long as the longest sample, rounded up to a
                       ///< multiple of this
  Index length = 0;    ///< fixed length of rows; 0: as above
  /// Rows are as long as one of few lengths up to this: multiples of 8 up to 64, of 16 up to 128, of 32 up to 256 and
  /// so on. Batches then have few shapes, and a GPU replays their passes. 0: as above.
  Index largest_bucket = 0;
  Side side = Side::end;                            ///< where the padding is
  Mask mask = Mask::none;                           ///< `column.mask` in addition to `column.lengths`
  SegmentPlans segment_plans = SegmentPlans::none;  ///< `column.plan` for sequences of std::int32_t

  template <class Source, class Space>
  using Batch = Columns<SampleOf<Source>, Space>;  ///< columns with padded sequences

  /// Checks whether a sample fits before its batch is laid out, so that only this sample fails or is skipped. Strings
  /// have any length, because they are not padded.
  /// @throws DataError if the length of a padded member is above `length`
  template <class Sample>
  void check(SampleExtent<Sample> const& extent) const {
    for (std::size_t i = 0; auto const each : extent.lengths)
      if (!detail::is_string_length<Sample>[i++] && length > 0 && each > length) refuse(each);
  }

  /// Returns the lengths of the rows of a batch whose largest lengths are `longest`.
  template <class Extent>
  [[nodiscard]] Extent padded(Extent longest) const {
    auto const options = column_options();
    for (auto& each : longest.lengths) each = length > 0 ? length : detail::padded_length(options, each, 0);
    return longest;
  }

  /// Lays out a batch in memory of `slab`, which is rewound.
  template <class Sample>
  [[nodiscard]] Columns<Sample, HostSpace> plan(BatchPlan<Sample> const& plan, Slab& slab) const {
    check_options();
    return detail::plan_columns<Sequences::padded>(plan, slab, column_options());
  }

  /// Copies a sample into its row. Several threads may write different rows at once.
  template <class Sample>
  void row(Columns<Sample, HostSpace> const& batch, Index row, Sample const& sample) const {
    auto const options = column_options();
    detail::pad(batch, row, options);
    detail::put(batch, row, sample, options);
  }

  /// Returns a row for a dataset to fill. Its padding is written, the rest is unchanged.
  template <class Sample>
  [[nodiscard]] Row<Sample> open_row(Columns<Sample, HostSpace> const& batch, Index row) const {
    detail::pad(batch, row, column_options());
    return {batch, row};
  }

  /// Adds segment plans, which need all rows.
  template <class Sample>
  void finish(Columns<Sample, HostSpace>& batch, Slab& slab) const {
    detail::finish(batch, slab, column_options());
  }

 private:
  [[nodiscard]] detail::CollateOptions column_options() const noexcept {
    return {"PadCollate", value, multiple, length, largest_bucket, side, mask, segment_plans};
  }
  /// @throws ConfigError
  void check_options() const;
  /// @throws DataError for a sample that is too long
  [[noreturn, gnu::cold]] void refuse(Index sample_length) const;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/collate/pad_collate.ipp>
#endif
