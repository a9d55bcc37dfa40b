// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The samples of each class that has samples, in the order of classes and samples.
using SamplesByClass = std::vector<std::vector<Index>>;

/// @throws ConfigError, with the caller's name, unless each of `samples` samples has a class that is not negative
inline SamplesByClass samples_by_class(std::string const& who, std::vector<std::int32_t> const& classes,
                                       Index samples) {
  if (static_cast<Index>(classes.size()) != samples)
    throw ConfigError(who + ": " + std::to_string(classes.size()) + " classes for " + std::to_string(samples) +
                      " samples; give the class of each sample");
  std::map<std::int32_t, std::vector<Index>> found;  // class numbers may be far apart
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < 0)
      throw ConfigError(who + ": the class of sample " + std::to_string(i) + " is " + std::to_string(classes[i]) +
                        "; classes are numbered from 0");
    found[classes[i]].push_back(static_cast<Index>(i));
  }
  SamplesByClass all;
  for (auto& [number, members] : found) all.push_back(std::move(members));
  return all;
}

}}}  // namespace lockstep::data::detail
