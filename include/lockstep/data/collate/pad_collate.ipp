// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/pad_collate.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

namespace detail {

inline void require_padding(bool holds, char const* what, Index is, char const* rule) {
  if (!holds)
    throw ConfigError(std::string("PadCollate: ") + what + " is " + std::to_string(is) + "; it must be " + rule);
}

}  // namespace detail

LOCKSTEP_INLINE void PadCollate::check_options() const {
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  detail::require_padding(multiple >= 1 && multiple <= most, "multiple", multiple, "at least 1 and below 2^31");
  detail::require_padding(length >= 0 && length <= most, "length", length,
                          "at least 0 and below 2^31; 0 means the longest sample of the batch");
  detail::require_padding(largest_bucket >= 0 && largest_bucket <= most, "largest_bucket", largest_bucket,
                          "at least 0 and below 2^31; 0 means no buckets");
  detail::require_padding(length % multiple == 0, "length", length, "a multiple of `multiple`");
}

LOCKSTEP_INLINE void PadCollate::refuse(Index sample_length) const {
  throw DataError("PadCollate: the sample has length " + std::to_string(sample_length) + ", and rows are padded to " +
                  std::to_string(length) + "; shorten the samples or raise `length`");
}

}}}  // namespace lockstep::data
