// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/detail/synonyms.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Meaning of a given name and value, for any of a flag's names.
struct NamedValue {
  std::optional<std::size_t> flag = {};  ///< empty if nothing is to be set
  std::string name = {};                 ///< as given
  std::vector<std::string> values = {};  ///< candidates; the first one applies unless another name of the flag gives
                                         ///< another candidate
  bool as_is = false;                    ///< whether the value is in the flag's own words
  std::size_t line = 0;                  ///< in a configuration file
  bool dropped = false;                  ///< whether another name of the flag is more specific
};

/// Names of a command's flags, in which - and _ are equal, and, after `add_synonyms`, their synonyms.
class FlagNames {
 public:
  void add_synonyms() noexcept { synonyms_ = true; }
  /// Adds synonyms of a flag, by its first name. Both strings must outlive this object's use.
  void add_synonyms(std::string_view flag, std::string_view synonyms);
  /// Adds the names of the next flag: "--parallel,--multi-gpu".
  void enter(std::string const& names);

  [[nodiscard]] std::vector<OtherNames> const& synonyms() const noexcept { return others_; }
  [[nodiscard]] static std::string with_dashes(std::string name);
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

  /// Returns the meaning of `given`, with or without leading dashes, and its value; empty for an unknown name.
  /// @throws ConfigError if the value is invalid, or the synonym's flag does not exist in this command
  [[nodiscard]] std::optional<NamedValue> read(std::string const& given, std::string const& value);

  /// Resolves several names of one flag. A name with several candidates yields to a name that gives one of them. For
  /// all others, calls twice(first, second), which throws.
  template <class Function>
  static void resolve_duplicates(std::vector<NamedValue>& all, Function&& twice) {
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (!all[i].flag || all[i].flag != all[j].flag || all[j].dropped) continue;
        bool const second = all[i].values.size() > 1;
        auto &vague = second ? all[i] : all[j], &other = second ? all[j] : all[i];
        auto const& choice = vague.values;
        if (choice.size() < 2 || std::find(choice.begin(), choice.end(), other.values[0]) == choice.end())
          twice(all[j], all[i]);
        vague.dropped = true;
      }
  }

  /// Adds a note if a name has several candidates.
  void note_choice(NamedValue const& given_value, std::string const& flag);
  /// Returns one sentence for each accepted setting and each choice.
  [[nodiscard]] std::vector<std::string> notes() const;

  /// Returns all accepted names, the flags' own first.
  [[nodiscard]] std::vector<std::string> known() const;
  /// Returns the flag of a synonym, such as "--lr" of "--base-lr"; empty for other names.
  [[nodiscard]] std::string flag_of_synonym(std::string_view name) const;

 private:
  /// Returns the flag that has any of the names in a row.
  [[nodiscard]] std::optional<std::size_t> find(OtherNames const& row) const;
  [[nodiscard]] std::size_t offered(OtherNames const& row, std::string const& given) const;
  void accept(Constant const& row, std::string const& given, std::string const& value);
  [[nodiscard]] static std::string bare(std::string const& name);

  bool synonyms_ = false;
  std::vector<OtherNames> others_{std::begin(other_names), std::end(other_names)};  // sorted by flag
  std::vector<std::string> known_;
  std::vector<std::vector<std::string>> flags_;  // per flag, with - instead of _
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, Always>> accepted_;
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/flag_names.ipp>
#endif
