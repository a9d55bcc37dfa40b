// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/app/detail/config_file.hpp>
#include <lockstep/app/detail/flag_names.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/core/shortest.hpp>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
class Option;
}  // namespace CLI

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Number of values of a flag in a configuration file.
enum class Takes {
  value,  ///< one value
  list,   ///< several values, separated by commas on the command line
};

/// Set of `--name VALUE` flags that write into variables of the caller, which must outlive `parse`. The value of a
/// variable when it is added is the default that --help shows. Invalid values are rejected with the flag's name and the
/// range or the choices. - and _ are equal in names of flags. A configuration file may set the flags too, without the
/// leading dashes.
class Command {
 public:
  /// @param what first line of --help; empty: none
  explicit Command(std::string what = "");
  Command(Command const&) = delete;
  Command& operator=(Command const&) = delete;
  ~Command();

  /// Sets the heading in --help for the flags that are added next.
  void group(std::string const& heading);

  /// Adds a flag whose value take(name, value) reads; `names` may have aliases: "--parallel,--multi-gpu".
  void add(std::string const& names, std::string const& help,
           std::function<void(std::string const&, std::string const&)> const& take, Takes takes = Takes::value);
  /// Adds the flag of an option, which writes into its variable. `initial` replaces {} in its help.
  void add(OptionDescriptor const& option, std::string const& initial = "");
  /// Adds the flag of an option whose value take(name, value) reads.
  void add(OptionDescriptor const& option, std::function<void(std::string const&, std::string const&)> const& take,
           Takes takes = Takes::value);
  /// Adds a flag without a value, which sets `value`.
  void add(std::string const& names, bool& value, std::string const& help);
  /// Accepts the synonyms of other trainers for these flags, and settings that are constant here. The synonyms are
  /// those of the options' descriptors and of detail/synonyms.hpp.
  void add_synonyms();
  /// Adds --config FILE, whose values apply to flags that are not on the command line.
  void add_config();

  /// Adds the flag of a number in [least, most]; the help shows the range and the default.
  template <class Value>
  void add(std::string const& names, Value& value, std::type_identity_t<Value> least, std::type_identity_t<Value> most,
           std::string const& help) {
    add(names, help + " (" + detail::range_sentence(least, most) + "; default " + shortest(value) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_number<Value>(name, text, least, most);
        });
    flags_.back().value = [&value] { return shortest(value); };
  }
  /// Adds the flag of an optional number in [least, most].
  template <class Value>
  void add(std::string const& names, std::optional<Value>& value, std::type_identity_t<Value> least,
           std::type_identity_t<Value> most, std::string const& help) {
    add(names, help + " (" + detail::range_sentence(least, most) + default_of(value ? shortest(*value) : "") + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_number<Value>(name, text, least, most);
        });
    flags_.back().value = [&value] { return value ? shortest(*value) : not_given; };
  }
  /// Adds a flag of several numbers, separated by commas.
  template <class Value>
  void add(std::string const& names, std::vector<Value>& value, std::type_identity_t<Value> least,
           std::type_identity_t<Value> most, std::string const& help) {
    auto const text_of = [&value] {
      std::string text;
      for (auto const& each : value) text += (text.empty() ? "" : ",") + shortest(each);
      return text;
    };
    add(
        names, help + " (a list, each " + detail::range_sentence(least, most) + default_of(text_of()) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_numbers<Value>(name, text, least, most);
        },
        Takes::list);
    flags_.back().value = [text_of] { return text_of().empty() ? not_given : text_of(); };
  }
  /// Adds the flag of a string.
  void add(std::string const& names, std::string& value, std::string const& help);
  /// Adds a flag of one word of a list; each word is the name of a value.
  template <class Value>
  void add(std::string const& names, Value& value,
           std::vector<std::pair<std::string, std::type_identity_t<Value>>> choices, std::string const& help) {
    std::vector<std::string> words;
    std::string own;
    for (auto const& [word, meaning] : choices) {
      words.push_back(word);
      if constexpr (std::equality_comparable<Value>)
        if (value == meaning) own = word;
    }
    add_words(names, std::move(words), own, help, [&value, choices](std::size_t i) { value = choices[i].second; });
    if constexpr (std::equality_comparable<Value>)
      flags_.back().value = [&value, choices] {
        for (auto const& [word, meaning] : choices)
          if (value == meaning) return word;
        return not_given;
      };
  }
  /// Adds a flag of several words of a list, separated by commas; each word is the name of a value, "none"
  /// of no value.
  template <class Value>
  void add(std::string const& names, std::vector<Value>& value,
           std::vector<std::pair<std::string, std::type_identity_t<Value>>> choices, std::string const& help) {
    std::vector<std::string> words{"none"};
    std::string all = "none";
    for (auto const& each : choices) {
      words.push_back(each.first);
      all += ", " + each.first;
    }
    auto const text_of = [&value, choices] {
      std::string text;
      for (auto const& [word, meaning] : choices)
        if (std::count(value.begin(), value.end(), meaning) > 0) text += (text.empty() ? "" : ",") + word;
      return text.empty() ? "none" : text;
    };
    add(
        names, help + " (none, or several of" + all.substr(5) + "; default " + text_of() + ")",
        [&value, choices, words, all](auto const& name, auto const& text) {
          value.clear();
          std::istringstream list(text);
          for (std::string each; text != "none" && std::getline(list, each, ',');) {
            auto const found =
                std::find_if(choices.begin(), choices.end(), [&](auto const& choice) { return choice.first == each; });
            if (found == choices.end())
              throw ConfigError(name + " " + text + ": \"" + each + "\" must be one of " + all + "; the nearest is " +
                                nearest(each, words));
            value.push_back(found->second);
          }
        },
        Takes::list);
    flags_.back().value = text_of;
  }

  /// Reads the arguments, and the configuration file that they name, into the variables. Returns false if --help was
  /// given.
  /// @throws ConfigError with the offending flag and its valid values, or the nearest known flag
  [[nodiscard]] bool parse(int argc, char const* const* argv);
  /// Implements the first part of `parse`, whose result does not depend on the host.
  [[nodiscard]] bool parse_arguments(int argc, char const* const* argv);
  /// Implements the second part of `parse`.
  void read_config();
  /// Returns whether the arguments name a configuration file.
  [[nodiscard]] bool has_config() const noexcept { return !config_.empty(); }
  /// Returns an equivalent command line without the configuration file, which may change or disappear. Call after
  /// `parse`.
  [[nodiscard]] std::vector<std::string> arguments(int argc, char const* const* argv) const;
  /// Returns names and values of the flags after the first `known`, including defaults. It omits flags of strings,
  /// which may be paths, and flags that the caller reads. Call after `parse`.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> values(std::size_t known = 0) const;
  /// Returns names and values of all flags, except flags without a value and those that the caller reads. Call after
  /// `parse`.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings() const;
  /// Returns the names of the flags of strings, whose values may look like numbers.
  [[nodiscard]] std::vector<std::string> text_flags() const;
  /// Returns values(known) as lines "--name=value", without flags that are not given.
  [[nodiscard]] std::string lines(std::size_t known) const;
  /// Sets flags after the first `known` that are not given to the values of `lines`. Ignores unknown names. Returns the
  /// lines that changed a value. Call after `parse`.
  /// @throws ConfigError for an invalid value
  std::vector<std::string> adopt(std::string const& lines, std::size_t known);
  /// Returns the flags that were given, by their first names. Call after `parse`.
  [[nodiscard]] std::vector<std::string> given() const;
  /// Returns whether the flag with this first name, such as "--lr", was given. Call after `parse`.
  [[nodiscard]] bool given(std::string_view name) const;
  /// Returns one sentence for each setting that was accepted without effect, and for each choice. Call after `parse`.
  [[nodiscard]] std::vector<std::string> notes() const { return names_.notes(); }
  /// Returns the synonyms of flags, sorted by flag.
  [[nodiscard]] std::vector<detail::OtherNames> const& synonyms() const noexcept { return names_.synonyms(); }
  /// Returns the number of flags.
  [[nodiscard]] std::size_t size() const noexcept { return flags_.size(); }
  /// Returns the text of --help.
  [[nodiscard]] std::string help() const;

 private:
  static constexpr char config_flag[] = "--config";
  inline static std::string const not_given = "not given";

  struct Flag {
    std::string name;  // first name
    std::function<void(std::string const&, std::string const&)> take;
    Takes takes;
    CLI::Option* option = nullptr;
    std::size_t line = 0;  // line in the configuration file
    std::function<std::string()> value = nullptr;
    bool is_text = false;
  };
  /// Adds a flag of one of `words`; set(i) is called with the index of the given one.
  void add_words(std::string const& names, std::vector<std::string> words, std::string const& initial,
                 std::string const& help, std::function<void(std::size_t)> const& set);
  template <class Value>
  void add_number(std::string const& names, OptionVariable const& variable, OptionRange const& range,
                  std::string const& help);
  static std::string default_of(std::string const& value) { return value.empty() ? "" : "; default " + value; }
  Flag& enter(std::string const& names, std::function<void(std::string const&, std::string const&)> take, Takes takes);

  /// Translates the command line to the flags' own names and values.
  [[nodiscard]] std::vector<std::string> translated_arguments(int argc, char const* const* argv);

  /// Returns the names that a configuration file may use: all except --config.
  [[nodiscard]] std::vector<std::string> config_names() const;
  void apply(std::vector<detail::Setting> const& settings);
  [[noreturn]] void refuse(std::string const& argument) const;
  /// Returns the flag of that name, or null.
  [[nodiscard]] Flag const* find(std::string const& name) const;
  [[nodiscard]] static ConfigError given_twice(std::string const& name);
  [[nodiscard]] static ConfigError without_value(std::string const& name);

  std::unique_ptr<CLI::App> app_;
  bool help_asked_ = false;
  detail::FlagNames names_;
  std::vector<Flag> flags_;
  std::string config_;
  std::vector<std::string> configured_;  // flags that the configuration file sets
};

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/command.ipp>
#endif
