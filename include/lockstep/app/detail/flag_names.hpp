// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
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
  /// Adds the names of the next flag: "--parallel,--multi-gpu".
  void enter(std::string const& names) {
    auto& own = flags_.emplace_back();
    std::istringstream list(names);
    for (std::string each; std::getline(list, each, ',');) {
      known_.push_back(each);
      own.push_back(with_dashes(each));
    }
  }

  [[nodiscard]] static std::string with_dashes(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    for (std::size_t i = 0; i < flags_.size(); ++i)
      if (std::find(flags_[i].begin(), flags_[i].end(), name) != flags_[i].end()) return i;
    return {};
  }

  /// Returns the meaning of `given`, with or without leading dashes, and its value; empty for an unknown name.
  /// @throws ConfigError if the value is invalid, or the synonym's flag does not exist in this command
  [[nodiscard]] std::optional<NamedValue> read(std::string const& given, std::string const& value) {
    auto const name = with_dashes(given.starts_with("--") ? given : "--" + given);
    if (auto const flag = find(name)) return NamedValue{.flag = flag, .name = given, .values = {value}, .as_is = true};
    if (!synonyms_) return {};
    auto const bare = std::string_view(name).substr(2);
    if (auto const* const row = row_of(other_names, bare))
      return NamedValue{.flag = offered(*row, given), .name = given, .values = {value}, .as_is = true};
    if (auto const* const row = row_of(translations, bare)) {
      auto const meaning = translate(*row, value);
      if (!meaning.known)
        throw ConfigError(given + " " + value + ": must be one of " + words_of(*row) + "; it is another name of " +
                          std::string(row->flag));
      NamedValue said{.name = given, .values = meaning.values};
      if (!meaning.values.empty()) said.flag = offered({row->flag, ""}, given);
      return said;
    }
    if (auto const* const row = row_of(constants, bare)) {
      accept(*row, given, value);
      return NamedValue{.name = given};
    }
    if (auto const* const row = row_of(refused_names, bare))
      throw ConfigError(given + " " + value + ": is not a flag of this program, because " + std::string(row->because) +
                        "; leave it out");
    return {};
  }

  /// Resolves several names of one flag. A name with several candidates yields to a name that gives one of them. For
  /// all others, calls twice(first, second), which throws.
  template <class F>
  static void settle(std::vector<NamedValue>& all, F&& twice) {
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
  void note_choice(NamedValue const& said, std::string const& flag) {
    if (said.values.size() > 1)
      notes_.push_back(bare(said.name) + " means " + flag + " " + said.values[0] + " here; the other choice is " +
                       flag + " " + said.values[1]);
  }
  /// Returns one sentence for each accepted setting and each choice.
  [[nodiscard]] std::vector<std::string> notes() const {
    auto all = notes_;
    auto const list = [&](Always is, char const* what) {
      std::string names;
      for (auto const& [name, kind] : accepted_)
        if (kind == is) names += (names.empty() ? "" : ", ") + name;
      if (!names.empty()) all.push_back(names + ": " + what);
    };
    list(Always::on, "always on, accepted");
    list(Always::off, "always off, accepted");
    list(Always::either, "makes no difference, accepted");
    list(Always::unused, "not used, accepted");
    return all;
  }

  /// Returns all accepted names, the flags' own first.
  [[nodiscard]] std::vector<std::string> known() const {
    auto all = known_;
    if (!synonyms_) return all;
    auto const add = [&](std::string_view names) {
      any_word(names, [&](std::string_view name) {
        all.push_back("--" + std::string(name));
        return false;
      });
    };
    for (auto const& row : other_names)
      if (find(row)) add(row.names);
    for (auto const& row : translations)
      if (find(row.flag)) add(row.names);
    for (auto const& row : constants) add(row.names);
    return all;
  }

 private:
  /// Returns the flag that has any of the names in a row.
  [[nodiscard]] std::optional<std::size_t> find(OtherNames const& row) const {
    auto found = find(row.flag);
    any_word(row.names, [&](std::string_view name) {
      if (!found) found = find("--" + std::string(name));
      return found.has_value();
    });
    return found;
  }
  [[nodiscard]] std::size_t offered(OtherNames const& row, std::string const& given) const {
    auto const found = find(row);
    if (!found)
      throw ConfigError(given + ": another name of " + std::string(row.flag) + ", which this program does not have");
    return *found;
  }
  void accept(Constant const& row, std::string const& given, std::string const& value) {
    auto const says = truth(value);
    if (row.is != Always::unused && says != "true" && says != "false")
      throw ConfigError(given + " " + value + ": must be true or false");
    if ((row.is == Always::on || row.is == Always::off) && (says == "true") != (row.is == Always::on))
      throw ConfigError(given + " " + value + ": is not possible, because " + std::string(row.because) +
                        "; leave it out");
    std::pair const said{bare(given), row.is};
    if (std::find(accepted_.begin(), accepted_.end(), said) == accepted_.end()) accepted_.push_back(said);
  }
  [[nodiscard]] static std::string bare(std::string const& name) {
    return name.starts_with("--") ? name.substr(2) : name;
  }

  bool synonyms_ = false;
  std::vector<std::string> known_;
  std::vector<std::vector<std::string>> flags_;  // per flag, with - instead of _
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, Always>> accepted_;
};

}}}  // namespace lockstep::app::detail
