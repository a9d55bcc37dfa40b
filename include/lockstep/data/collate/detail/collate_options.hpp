// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/column.hpp>
#include <lockstep/data/sample_extent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Whether a batch's columns have a mask in addition to their lengths.
enum class Mask { none, build };

/// Whether sequences of std::int32_t get a segment plan, for the backward pass of an embedding on the host.
enum class SegmentPlans { none, build };

namespace detail {

/// Options of a collate, for the functions that process one column.
struct CollateOptions {
  char const* collate_name;
  double value = 0;
  Index multiple = 1, length = 0, largest_bucket = 0;
  Side side = Side::end;
  Mask mask = Mask::none;
  SegmentPlans segment_plans = SegmentPlans::none;
};

/// Returns the padding value as an element. @throws ConfigError if an integer type cannot represent it
template <Number Value>
Value padding_as(CollateOptions const& options) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>(padding_as<std::underlying_type_t<Value>>(options));
  } else if constexpr (std::floating_point<Value>) {
    return static_cast<Value>(options.value);
  } else {
    using Limits = std::numeric_limits<Value>;
    constexpr double beyond =
        2.0 * static_cast<double>(Value{1} << (Limits::digits - 1));  // the largest value plus one
    bool const fits = options.value >= static_cast<double>(Limits::min()) && options.value < beyond;
    if (!fits || static_cast<double>(static_cast<Value>(options.value)) != options.value) {
      throw ConfigError(std::string(options.collate_name) + ": the padding value " + shortest(options.value) +
                        " does not fit a member of whole numbers of " + std::to_string(sizeof(Value) * 8) +
                        " bits; choose a whole number within their range");
    }
    return static_cast<Value>(options.value);
  }
}

/// The announced lengths of the samples' variable-length members, taken member by member.
template <class Sample>
struct Lengths {
  std::span<SampleExtent<Sample> const> extents;
  std::size_t next = 0;  // the number of the next variable-length member

  template <class Each>
  void take(CollateOptions const& options, Each&& each) {
    for (std::size_t row = 0; row < extents.size(); ++row) {
      auto const length = extents[row].lengths[next];
      if (length < 0 || length > std::numeric_limits<std::int32_t>::max()) {
        throw DataError(std::string(options.collate_name) + ": the sample in row " + std::to_string(row) +
                        " declares length " + std::to_string(length) + "; a length must be in [0, 2^31)");
      }
      each(static_cast<Index>(row), length);
    }
    ++next;
  }
};

inline void check_length(CollateOptions const& options, std::size_t found, std::size_t announced, Index row) {
  if (found == announced) return;
  throw DataError(std::string(options.collate_name) + ": the sample in row " + std::to_string(row) +
                  " has a member of length " + std::to_string(found) + ", but length " + std::to_string(announced) +
                  " was declared; a dataset must give the same sample for the same number each time");
}

}  // namespace detail
}}}  // namespace lockstep::data
