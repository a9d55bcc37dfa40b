// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Which rows of an array belong to a sample, where samples of varying length lie one after the other: sample i has the
/// rows [first(i), first(i) + count(i)). By default, one row each. A copy shares the table.
class RowRanges {
 public:
  RowRanges() = default;

  /// Sample i has the rows [offsets[i], offsets[i + 1]).
  /// @throws DataError when the offsets are none, do not start at 0 or descend; says which
  [[nodiscard]] static RowRanges of_offsets(std::vector<Index> offsets) {
    if (offsets.empty() || offsets.front() != 0)
      throw DataError("RowRanges: the first offset is " + (offsets.empty() ? "missing" : std::to_string(offsets[0])) +
                      "; it must be 0, and the last the number of rows");
    for (std::size_t i = 1; i < offsets.size(); ++i)
      if (offsets[i] < offsets[i - 1])
        throw DataError("RowRanges: offset " + std::to_string(i) + " is " + std::to_string(offsets[i]) + ", after " +
                        std::to_string(offsets[i - 1]) + "; offsets ascend (of_lengths takes lengths)");
    RowRanges out;
    out.offsets_ = std::make_shared<std::vector<Index> const>(std::move(offsets));
    return out;
  }
  /// Sample i has the next lengths[i] rows.
  /// @throws DataError for a length below 0; says which
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
  [[nodiscard]] bool single() const noexcept { return !offsets_; }
  /// How many samples an array of so many rows holds.
  [[nodiscard]] Index samples(Index rows) const noexcept {
    return single() ? rows : static_cast<Index>(offsets_->size()) - 1;
  }
  /// The rows that all samples have, of an array of so many.
  [[nodiscard]] Index used(Index rows) const noexcept { return single() ? rows : offsets_->back(); }
  [[nodiscard]] Index first(Index sample) const noexcept { return single() ? sample : at(sample); }
  [[nodiscard]] Index count(Index sample) const noexcept { return single() ? 1 : at(sample + 1) - at(sample); }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    std::uint64_t hash = 0;
    if (offsets_)
      for (auto const offset : *offsets_) hash = mix(hash, static_cast<std::uint64_t>(offset));
    return hash;
  }

 private:
  [[nodiscard]] Index at(Index i) const noexcept { return (*offsets_)[static_cast<std::size_t>(i)]; }

  std::shared_ptr<std::vector<Index> const> offsets_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
