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

LOCKSTEP_INLINE Index RowRanges::samples(Index rows) const noexcept {
  return single() ? rows : static_cast<Index>(offsets_->size()) - 1;
}

LOCKSTEP_INLINE std::uint64_t RowRanges::fingerprint() const noexcept {
  std::uint64_t hash = 0;
  if (offsets_)
    for (auto const offset : *offsets_) hash = mix(hash, static_cast<std::uint64_t>(offset));
  return hash;
}

}}}  // namespace lockstep::data
