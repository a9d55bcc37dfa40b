// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Sliding windows over the rows of a long array, such as a time series: window i has the rows
/// [first + i * stride, first + i * stride + length).
struct RowWindows {
  Index length = 1;            ///< rows of a window
  Index stride = 1;            ///< rows from the start of a window to the start of the next
  Index first = 0;             ///< first row of the first window
  std::optional<Index> end{};  ///< row before which all windows end; none: the end of the array
};

/// The rows of an array that belong to each sample, for concatenated samples of varying length and for sliding windows.
/// Sample i has the rows [first(i), first(i) + count(i)). By default, each sample has one row. A copy shares the table.
class RowRanges {
 public:
  RowRanges() = default;

  /// Returns ranges in which sample i is window i. Windows may overlap, and take no memory.
  /// @throws ConfigError for a length or a stride below 1, or a negative first or end
  [[nodiscard]] static RowRanges windows(RowWindows const& windows);

  /// Returns ranges in which sample i has the rows [offsets[i], offsets[i + 1]).
  /// @throws DataError if there is no offset, the first is not 0, or they descend; names the offset
  [[nodiscard]] static RowRanges of_offsets(std::vector<Index> offsets);
  /// Returns ranges in which sample i has the next lengths[i] rows.
  /// @throws DataError for a length below 0; names the length
  template <class Length>
  [[nodiscard]] static RowRanges of_lengths(std::vector<Length> const& lengths) {
    std::vector<Index> offsets{0};
    for (auto const length : lengths) {
      auto const rows = static_cast<Index>(length);
      if (rows < 0 || rows > std::numeric_limits<Index>::max() - offsets.back())
        throw DataError("RowRanges: length " + std::to_string(offsets.size() - 1) + " is " + std::to_string(length) +
                        "; lengths are at least 0, and their sum fits memory");
      offsets.push_back(offsets.back() + rows);
    }
    return of_offsets(std::move(offsets));
  }

  /// Whether each sample has one row.
  [[nodiscard]] bool single() const noexcept { return !offsets_ && !windows_; }
  /// Returns the sliding windows, or nothing if samples have single rows or rows of their own.
  [[nodiscard]] std::optional<RowWindows> const& windows() const noexcept { return windows_; }
  /// Returns the number of samples in an array of `rows` rows.
  [[nodiscard]] Index samples(Index rows) const noexcept;
  /// Returns the row before which the samples of an array of `rows` rows end.
  [[nodiscard]] Index used(Index rows) const noexcept {
    if (windows_) return windows_->end.value_or(rows);
    return offsets_ ? offsets_->back() : rows;
  }
  /// Returns the first row of a sample.
  [[nodiscard]] Index first(Index sample) const noexcept {
    if (windows_) return windows_->first + sample * windows_->stride;
    return offsets_ ? at(sample) : sample;
  }
  /// Returns the number of rows of a sample; it may be 0.
  [[nodiscard]] Index count(Index sample) const noexcept {
    if (windows_) return windows_->length;
    return offsets_ ? at(sample + 1) - at(sample) : 1;
  }
  /// Returns a hash of the offsets or windows.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;

 private:
  [[nodiscard]] Index at(Index i) const noexcept { return (*offsets_)[static_cast<std::size_t>(i)]; }

  std::shared_ptr<std::vector<Index> const> offsets_;
  std::optional<RowWindows> windows_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/row_ranges.ipp>
#endif
