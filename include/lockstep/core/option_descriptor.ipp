// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <stdexcept>

#include <lockstep/core/error.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {
LOCKSTEP_COLD_INLINE std::string OptionVariable::text() const {
  auto const content = read();
  if (auto const* const text = content.text()) return *text;
  if (auto const* const number = content.number()) return shortest(*number);
  auto const* const integer = content.integer();
  if (!integer) return {};
  for (auto const& word : words_)
    if (word.value == *integer) return std::string(word.word);
  if (kind_ == Kind::boolean) return *integer != 0 ? "true" : "false";
  if (kind_ == Kind::natural) return std::to_string(static_cast<std::uint64_t>(*integer));
  return std::to_string(*integer);
}

LOCKSTEP_COLD_INLINE void OptionVariable::refuse_kind() {
  throw std::logic_error("an option is set to a content of another kind than its variable's");
}

LOCKSTEP_COLD_INLINE void OptionList::check_ranges() const {
  for (auto const& option : options_) {
    auto const content = option.variable.read();
    auto const* const integer = content.integer();
    auto const* const number = content.number();
    if (!integer && !number) continue;
    auto const value = integer ? static_cast<double>(*integer) : *number;
    auto const& [least, most, below, rule] = option.range;
    if (std::isinf(least) && std::isinf(most)) continue;  // a NaN passes, too
    if (value >= least && (below ? value < most : value <= most)) continue;
    auto const limits = "at least " + shortest(least) +
                        (std::isinf(most) ? "" : (below ? " and below " : " and at most ") + shortest(most));
    throw ConfigError(std::string(owner_) + ": " + std::string(option.name) + " is " +
                      (integer ? std::to_string(*integer) : shortest(value)) + "; it must be " +
                      (rule.empty() ? limits : std::string(rule)));
  }
}

LOCKSTEP_COLD_INLINE OptionDescriptor const* OptionList::find(std::string_view name) const noexcept {
  for (auto const& option : options_)
    if (option.name == name) return &option;
  return nullptr;
}

LOCKSTEP_COLD_INLINE OptionDescriptor const& OptionList::at(std::string_view name) const {
  if (auto const* const option = find(name)) return *option;
  throw std::out_of_range(std::string(owner_) + " has no option " + std::string(name));
}

LOCKSTEP_COLD_INLINE void OptionList::assign(OptionList const& other) const {
  for (auto const& option : options_)
    if (auto const* const source = other.find(option.name)) {
      auto const content = source->variable.read();
      auto const* const text = content.text();
      if (!text || !text->empty()) option.variable.write(content);
    }
}

LOCKSTEP_COLD_INLINE std::vector<std::pair<std::string, std::string>> OptionList::changed(
    OptionList const& initial) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto const& option : options_) {
    auto const* const before = initial.find(option.name);
    if (option.recorded == Recorded::if_changed && before && option.variable.read() != before->variable.read())
      all.emplace_back(option.name, option.variable.text());
  }
  return all;
}

LOCKSTEP_COLD_INLINE OptionList::OptionList(std::string_view owner, std::vector<OptionDescriptor> options)
    : owner_(owner), options_(std::move(options)) {}

}}  // namespace lockstep
