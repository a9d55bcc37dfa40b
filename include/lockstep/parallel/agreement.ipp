// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/parallel/agreement.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_COLD_INLINE void Agreement::add(std::string_view field, std::string_view value) {
  text_.append(field).push_back('\0');
  text_.append(value).push_back('\0');
}

LOCKSTEP_COLD_INLINE void Agreement::add(std::string_view field, double value) { add(field, shortest(value)); }

LOCKSTEP_COLD_INLINE void Agreement::add(OptionList const& options) {
  for (auto const& [name, variable, range, field, recorded, flag] : options) {
    if (field.empty()) continue;
    auto const content = variable.read();
    auto const* const integer = content.integer();
    if (auto const* const number = content.number())
      add(field, *number);
    else if (integer && variable.words().empty())
      add(field, *integer);
    else
      add(field, variable.text());
  }
}

LOCKSTEP_COLD_INLINE std::string_view Agreement::next_part(std::string_view& text) {
  auto const end = std::min(text.find('\0'), text.size());
  auto const part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

LOCKSTEP_COLD_INLINE std::string Agreement::next(std::string_view& text, int& remedies) {
  while (!text.empty()) {
    auto const field = next_part(text), value = next_part(text);
    if (!field.empty()) return std::string(field) + " = " + std::string(value);
    ++remedies;
  }
  return "nothing more";
}

LOCKSTEP_COLD_INLINE std::string_view Agreement::remedy(int number) const {
  std::string_view out = "start all ranks with the same program, flags and data, on one kind of processor";
  for (std::string_view text = text_; number > 0 && !text.empty();) {
    auto const field = next_part(text), value = next_part(text);
    if (!field.empty()) continue;
    out = value;
    --number;
  }
  return out;
}

LOCKSTEP_COLD_INLINE void Agreement::refuse(std::size_t rank, std::string_view first, std::string_view other) const {
  std::string expected, found;
  int first_remedies = 0, other_remedies = 0;
  do {
    expected = next(first, first_remedies);
    found = next(other, other_remedies);
  } while (expected == found && !(first.empty() && other.empty()));
  using launch::peer_text;
  throw CollectiveMismatch("rank " + std::to_string(rank) + " has " + peer_text(found) + ", but rank 0 has " +
                           peer_text(expected) + "; " + std::string(remedy(std::min(first_remedies, other_remedies))));
}

}}}  // namespace lockstep::parallel
