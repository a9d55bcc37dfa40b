// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/gradient.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE nn::ParameterLayout::Entry const& entry_named(nn::ParameterLayout const& layout,
                                                                   std::string_view name, char const* what) {
  std::string known;
  for (auto const& entry : layout.entries()) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw ConfigError(std::string(what) + ": the model has no parameter \"" + std::string(name) + "\"; it has " + known);
}

}}}  // namespace lockstep::train::detail
