// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_COLD_INLINE ParameterLayout::ParameterLayout() = default;
LOCKSTEP_COLD_INLINE ParameterLayout::~ParameterLayout() = default;
LOCKSTEP_COLD_INLINE ParameterLayout::ParameterLayout(ParameterLayout const&) = default;
LOCKSTEP_COLD_INLINE ParameterLayout::ParameterLayout(ParameterLayout&&) noexcept = default;
LOCKSTEP_COLD_INLINE ParameterLayout& ParameterLayout::operator=(ParameterLayout const&) = default;
LOCKSTEP_COLD_INLINE ParameterLayout& ParameterLayout::operator=(ParameterLayout&&) noexcept = default;

LOCKSTEP_INLINE Index ParameterLayout::learned_size() const noexcept {
  for (auto const& entry : entries_)
    if (!entry.frozen) return entry.offset + padded(entry.size);
  return 0;
}

LOCKSTEP_INLINE Index ParameterLayout::parameters() const noexcept {
  Index n = 0;
  for (auto const& entry : entries_) n += entry.size;
  return n;
}

LOCKSTEP_COLD_INLINE void ParameterLayout::collect(std::string const& name, Parameter& parameter, Found& found) {
  found.parameters.push_back(&parameter);
  entries_.push_back({name, parameter.shape, parameter.initializer, 0, parameter.size(),
                      parameter.frozen ? GradientForm::dense : parameter.gradient_form, parameter.frozen});
}

LOCKSTEP_COLD_INLINE void ParameterLayout::collect(std::string const& name, Buffer& buffer, Found& found) {
  found.buffers.push_back(&buffer);
  buffers_.push_back({name, buffer.shape, buffer.initializer, 0, buffer.size()});
}

LOCKSTEP_COLD_INLINE std::string ParameterLayout::name_in(std::string const& parent, std::string_view child) {
  return parent.empty() ? std::string(child) : parent + "." + std::string(child);
}

LOCKSTEP_COLD_INLINE void ParameterLayout::assign_offsets(Found const& found) {
  auto const& [parameters, buffers] = found;
  check(found);
  for (std::size_t i = parameters.size(); i-- > 0;) {
    parameters[i]->offset = entries_[i].offset = size_;
    parameters[i]->ordinal = static_cast<int>(i);
    parameters[i]->name = entries_[i].name;
    size_ += padded(entries_[i].size);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i]->offset = buffers_[i].offset = buffer_size_;
    buffer_size_ += padded(buffers_[i].size);
  }
}

LOCKSTEP_COLD_INLINE void ParameterLayout::check(Found const& found) const {
  auto const name_of = [this](std::size_t i) -> std::string const& {
    return i < entries_.size() ? entries_[i].name : buffers_[i - entries_.size()].name;
  };
  NameTable known;
  std::vector<std::pair<void const*, std::size_t>> visited;
  for (auto const* parameter : found.parameters) visited.emplace_back(parameter, visited.size());
  for (auto const* buffer : found.buffers) visited.emplace_back(buffer, visited.size());
  for (std::size_t i = 0; i < visited.size(); ++i) {
    if (name_of(i).empty())
      throw ConfigError("model: a parameter or buffer has an empty name; give it a name in visit(), which files use");
    if (known.add(name_of) != NameTable::none)
      throw ConfigError("model: two parameters or buffers are named \"" + name_of(i) +
                        "\"; give the layers in visit() different names");
  }
  std::sort(visited.begin(), visited.end());
  for (std::size_t k = 1; k < visited.size(); ++k)
    if (visited[k].first == visited[k - 1].first)
      throw ConfigError("model: \"" + name_of(visited[k].second) +
                        "\" is visited twice; to share it, visit it once and pass it to the functions that use it");
}

}}}  // namespace lockstep::nn
