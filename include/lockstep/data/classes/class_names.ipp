// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <system_error>

#include <lockstep/data/classes/class_names.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE ClassNames::ClassNames(std::vector<std::string> names) : names_(std::move(names)) {
  for (auto const& name : names_)
    if (table_.add([this](std::size_t i) -> std::string_view { return names_[i]; }) != NameTable::none)
      throw DataError("ClassNames: the class \"" + name + "\" appears twice; name each class once");
}

LOCKSTEP_INLINE ClassNames ClassNames::of_labels(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::int32_t classes = 0;
  for (auto const& label : labels) {
    auto const number = number_of(label);
    if (!number || *number >= max_classes_by_number) return ClassNames(std::move(labels));
    classes = std::max(classes, *number + 1);
  }
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(classes));
  for (std::int32_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return ClassNames(std::move(names));
}

LOCKSTEP_INLINE std::optional<std::int32_t> ClassNames::find(std::string const& text) const {
  auto const label = table_.find(text, [this](std::size_t i) -> std::string_view { return names_[i]; });
  if (label != NameTable::none) return static_cast<std::int32_t>(label);
  auto const number = number_of(text);
  return number && *number < size() ? number : std::nullopt;
}

LOCKSTEP_INLINE std::string ClassNames::why_unknown(std::string const& text) const {
  return "label \"" + text + "\" is not one of the " + std::to_string(size()) + " classes" +
         (names_.empty() ? "" : "; the nearest is \"" + nearest(text, names_) + "\"");
}

LOCKSTEP_INLINE std::optional<std::int32_t> ClassNames::number_of(std::string_view text) noexcept {
  std::int32_t number = -1;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool const whole = error == std::errc{} && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

}}}  // namespace lockstep::data
