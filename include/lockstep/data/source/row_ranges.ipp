// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/row_ranges.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE RowRanges RowRanges::of_offsets(std::vector<Index> offsets) {
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

LOCKSTEP_INLINE RowRanges RowRanges::windows(RowWindows const& windows) {
  auto const require = [](Index value, Index least, char const* what) {
    if (value < least)
      throw ConfigError("RowRanges: the windows' " + std::string(what) + " is " + std::to_string(value) +
                        "; it must be at least " + std::to_string(least));
  };
  require(windows.length, 1, "length");
  require(windows.stride, 1, "stride");
  require(windows.first, 0, "first row");
  require(windows.end.value_or(0), 0, "end");
  RowRanges out;
  out.windows_ = windows;
  return out;
}

LOCKSTEP_INLINE Index RowRanges::samples(Index rows) const noexcept {
  if (windows_) {
    auto const begin = used(rows) - windows_->first - windows_->length;  // of the last window, after the first one's
    return begin < 0 ? 0 : begin / windows_->stride + 1;
  }
  return offsets_ ? static_cast<Index>(offsets_->size()) - 1 : rows;
}

LOCKSTEP_INLINE std::uint64_t RowRanges::fingerprint() const noexcept {
  std::uint64_t hash = 0;
  if (offsets_)
    for (auto const offset : *offsets_) hash = mix(hash, static_cast<std::uint64_t>(offset));
  if (windows_)
    for (auto const number : {windows_->length, windows_->stride, windows_->first, windows_->end.value_or(0)})
      hash = mix(hash, static_cast<std::uint64_t>(number));
  return hash;
}

}}}  // namespace lockstep::data
