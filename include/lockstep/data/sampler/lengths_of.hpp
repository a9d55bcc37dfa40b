// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/read_sample.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_extent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns the length of a vector or string of each sample, for LengthBucketedSampler and TokenBudgetSampler:
/// `lengths_of(clips, &Clip::frames)`. Measure the dataset without its random augmentation, if that keeps lengths.
/// @cost reads each sample once, unless the dataset has `extent(i)`
/// @throws DataError for a length above 2^31 - 1, and for a sample that cannot be made, by its name
template <Dataset Source, class Member>
[[nodiscard]] std::vector<std::int32_t> lengths_of(Source const& dataset, Member SampleOf<Source>::*member) {
  using Sample = SampleOf<Source>;
  static_assert(detail::variable_length<Member>,
                "Lockstep: lengths_of takes a member of the sample that is a std::vector or a std::string");
  Sample marked{};
  (marked.*member).resize(1);
  auto const marks = extent_of(marked).lengths;  // 1 at the member, whatever the order of the members
  auto const at = static_cast<std::size_t>(std::find(marks.begin(), marks.end(), Index{1}) - marks.begin());
  std::vector<std::int32_t> out;
  for (Index i = 0; i < static_cast<Index>(dataset.size()); ++i) {
    Index const length = [&] {
      if constexpr (requires { dataset.extent(i); })
        return dataset.extent(i).lengths[at];
      else
        return static_cast<Index>((detail::read_sample("lengths_of", dataset, i).*member).size());
    }();
    if (!std::in_range<std::int32_t>(length))
      throw DataError(detail::name_of(dataset, i) + " has the length " + std::to_string(length) +
                      ", above the largest of a sampler, 2147483647; cut it into several samples");
    out.push_back(static_cast<std::int32_t>(length));
  }
  return out;
}

}}}  // namespace lockstep::data
