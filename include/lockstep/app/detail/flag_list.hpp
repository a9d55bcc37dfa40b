// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/core/option_descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Adds flags to a command in the order of --help, from descriptors. Remembers which members of the trainers' options
/// replace options of other floors.
class FlagList {
 public:
  /// @param command null: the flags are only listed
  explicit FlagList(Command* command) : command_(command) {}

  /// Sets the heading of the flags that follow and have none of their own.
  void group(std::string_view heading) { heading_ = heading; }
  /// Adds a flag. `initial` replaces {} in its help.
  void add(OptionDescriptor option, std::string const& initial = "");
  /// Adds a flag whose value take(name, value) reads.
  void add(OptionDescriptor option, std::function<void(std::string const&, std::string const&)> const& take,
           Takes takes = Takes::value);
  /// Adds the flag of an option of `list`. It writes into `member`, which replaces the option.
  void add(OptionList const& list, std::string_view name, OptionVariable const& member,
           std::string const& initial = "");
  /// Adds the flags of all other options of `list`. They write into the options themselves.
  void add_rest(OptionList const& list);

  /// Returns the members that replace options of the list of this owner.
  [[nodiscard]] OptionList stand_ins(std::string_view owner) const;

 private:
  Command* command_;
  std::string_view heading_;
  std::vector<std::pair<std::string_view, OptionDescriptor>> stand_ins_;  // with their owners
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/flag_list.ipp>
#endif
