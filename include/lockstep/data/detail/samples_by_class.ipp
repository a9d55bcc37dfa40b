// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>

#include <lockstep/core/error.hpp>
#include <lockstep/data/detail/samples_by_class.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE SamplesByClass samples_by_class(std::string const& who, std::vector<std::int32_t> const& classes,
                                                     Index samples) {
  if (static_cast<Index>(classes.size()) != samples)
    throw ConfigError(who + ": " + std::to_string(classes.size()) + " classes for " + std::to_string(samples) +
                      " samples; give the class of each sample");
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i] < 0)
      throw ConfigError(who + ": the class of sample " + std::to_string(i) + " is " + std::to_string(classes[i]) +
                        "; classes are numbered from 0");
  auto const class_of = [&](Index sample) { return classes[static_cast<std::size_t>(sample)]; };
  std::vector<Index> sorted(classes.size());  // class numbers may be far apart
  std::iota(sorted.begin(), sorted.end(), Index{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](Index a, Index b) { return class_of(a) < class_of(b); });
  SamplesByClass all;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    auto const end = std::find_if(begin, sorted.end(), [&](Index i) { return class_of(i) != class_of(*begin); });
    all.emplace_back(begin, end);
    begin = end;
  }
  return all;
}

}}}  // namespace lockstep::data::detail
