// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/parallel/agreement.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_COLD_INLINE void Agreement::set_remedy(char const* remedy) {
  remedies_.push_back(remedy);
  add({}, std::string_view());
}

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

LOCKSTEP_COLD_INLINE std::string Agreement::next(std::string_view& text, std::size_t& remedies) {
  for (std::string_view const mark("\0\0", 2); text.starts_with(mark); ++remedies) text.remove_prefix(mark.size());
  if (text.empty()) return "nothing more";
  std::string entry;
  for (int part = 0; part < 2; ++part) {
    auto const end = text.find('\0');
    entry.append(text.substr(0, end)).append(part == 0 ? " = " : "");
    text.remove_prefix(std::min(end, text.size() - 1) + 1);
    if (text.empty()) break;
  }
  return entry;
}

LOCKSTEP_COLD_INLINE void Agreement::refuse(std::size_t rank, std::string_view first, std::string_view other) const {
  std::string expected, found;
  std::size_t first_remedies = 0, other_remedies = 0;
  do {
    expected = next(first, first_remedies);
    found = next(other, other_remedies);
  } while (expected == found && !(first.empty() && other.empty()));
  using launch::peer_text;
  throw CollectiveMismatch("rank " + std::to_string(rank) + " has " + peer_text(found) + ", but rank 0 has " +
                           peer_text(expected) + "; " +
                           remedies_[std::min({first_remedies, other_remedies, remedies_.size() - 1})]);
}

}}}  // namespace lockstep::parallel
