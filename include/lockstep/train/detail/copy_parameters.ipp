// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>

#include <lockstep/core/shortest.hpp>
#include <lockstep/train/detail/copy_parameters.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void copy_parameters(NamedTensors<float const> const& from, NamedTensors<float> const& to,
                                     std::string_view prefix, std::string_view in_other, double share) {
  if (!(share >= 0 && share <= 1))
    throw ConfigError("copy_parameters: the share is " + shortest(share) +
                      "; it must be at least 0, which copies nothing, and at most 1, which copies all");
  struct Found {
    nn::ParameterLayout::Entry const* entry;
    float const* elements;
  };
  std::map<std::string_view, Found> others;
  from.each([&](auto const& entry, auto elements) { others[entry.name] = {&entry, elements.data()}; });
  bool found = false;
  for (bool const takes : {false, true})
    to.each([&](auto const& entry, auto elements) {
      if (!entry.name.starts_with(prefix)) return;
      found = true;
      auto const name = std::string(in_other) += entry.name.substr(prefix.size());
      auto const other = others.find(name);
      if (other == others.end())
        throw ConfigError("copy_parameters: the other model has no \"" + name + "\", to be copied to \"" + entry.name +
                          "\"; copy_parameters(other, prefix, in_other) maps names");
      if (auto const& shape = other->second.entry->shape; shape != entry.shape)
        throw ShapeError("copy_parameters: \"" + name + "\" of the other model has shape " + to_string(shape) +
                         " and \"" + entry.name + "\" " + to_string(entry.shape) + "; give both models the same sizes");
      if (!takes) return;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        auto const taken = other->second.elements[i];
        elements[i] = share == 1 ? taken : elements[i] + static_cast<float>(share) * (taken - elements[i]);
      }
    });
  if (!found && !prefix.empty())
    throw ConfigError("copy_parameters: no name in the model begins with \"" + std::string(prefix) +
                      "\"; its first parameter is \"" +
                      (to.layout.entries().empty() ? std::string() : to.layout.entries()[0].name) + "\"");
}

}}}  // namespace lockstep::train::detail
