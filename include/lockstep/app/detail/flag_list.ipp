// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/flag_list.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void FlagList::add(OptionDescriptor option, std::string const& initial) {
  if (option.flag.heading.empty()) option.flag.heading = heading_;
  if (command_) command_->add(option, initial);
}

LOCKSTEP_INLINE void FlagList::add(OptionDescriptor option,
                                   std::function<void(std::string const&, std::string const&)> const& take,
                                   Takes takes) {
  if (option.flag.heading.empty()) option.flag.heading = heading_;
  if (command_) command_->add(option, take, takes);
}

LOCKSTEP_INLINE void FlagList::add(OptionList const& list, std::string_view name, OptionVariable const& member,
                                   std::string const& initial) {
  auto option = list.at(name);
  option.variable = member.with_words(option.variable.words());
  add(option, initial);
  stand_ins_.emplace_back(list.owner(), option);
}

LOCKSTEP_INLINE void FlagList::add_rest(OptionList const& list) {
  auto const known = stand_ins(list.owner());
  for (auto const& option : list)
    if (!option.flag.names.empty() && !known.find(option.name)) add(option);
}

LOCKSTEP_INLINE OptionList FlagList::stand_ins(std::string_view owner) const {
  std::vector<OptionDescriptor> found;
  for (auto const& [of, option] : stand_ins_)
    if (of == owner) found.push_back(option);
  return {owner, std::move(found)};
}

}}}  // namespace lockstep::app::detail
