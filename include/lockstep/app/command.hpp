// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <lockstep/app/detail/number.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/nearest.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app {

/// A set of `--name VALUE` flags that write into variables of the caller, which must outlive `parse`. A variable's
/// content when it is added is the default that --help shows. What does not fit is refused by name, with the range or
/// the choices.
class Command {
 public:
  explicit Command(std::string what = "") : app_(std::move(what)) {
    app_.set_help_flag();
    app_.add_flag("--help", help_asked_, "Print this and exit");
    app_.allow_extras();
  }
  Command(Command const&) = delete;
  Command& operator=(Command const&) = delete;

  /// A flag whose text `take(name, text)` reads; `names` may hold aliases: "--parallel,--multi-gpu".
  void add(std::string const& names, std::string const& help,
           std::function<void(std::string const&, std::string const&)> take) {
    std::string const name = names.substr(0, names.find(','));
    std::istringstream list(names);
    for (std::string each; std::getline(list, each, ',');) known_.push_back(each);
    auto* option = app_.add_option_function<std::string>(
        names, [name, take = std::move(take)](std::string const& text) { take(name, text); }, help);
    option->type_name("");
  }

  /// A flag without a value, which sets `asked`.
  void add(std::string const& name, bool& asked, std::string const& help) {
    known_.push_back(name);
    app_.add_flag_callback(
        name, [&asked] { asked = true; }, help);
  }

  template <class T>
  void add(std::string const& names, T& value, std::type_identity_t<T> least, std::type_identity_t<T> most,
           std::string const& help) {
    add(names, help + " (" + detail::range_sentence(least, most) + "; default " + detail::shortest(value) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::number<T>(name, text, least, most);
        });
  }
  template <class T>
  void add(std::string const& names, std::optional<T>& value, std::type_identity_t<T> least,
           std::type_identity_t<T> most, std::string const& help) {
    add(names, help + " (" + detail::range_sentence(least, most) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::number<T>(name, text, least, most);
        });
  }
  void add(std::string const& names, std::string& value, std::string const& help) {
    add(names, help, [&value](auto const& name, auto const& text) {
      if (text.empty()) throw ConfigError(name + " '': must not be empty; leave the flag out for the default");
      value = text;
    });
  }
  /// One word out of a list, each standing for a value.
  template <class T>
  void add(std::string const& names, T& value, std::vector<std::pair<std::string, std::type_identity_t<T>>> choices,
           std::string const& help) {
    std::vector<std::string> words;
    std::string all;
    for (auto const& [word, meaning] : choices) {
      words.push_back(word);
      all += (all.empty() ? "" : ", ") + word;
    }
    add(names, help + " (" + all + ")", [&value, choices, words, all](auto const& name, auto const& text) {
      for (auto const& [word, meaning] : choices) {
        if (word != text) continue;
        value = meaning;
        return;
      }
      throw ConfigError(name + " " + text + ": must be one of " + all + "; the nearest is " + nearest(text, words));
    });
  }

  /// Reads the arguments into the variables; false when --help was among them.
  /// @throws ConfigError with the offending flag and what it takes, or the nearest known flag
  [[nodiscard]] bool parse(int argc, char const* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
      std::string const what = error.what();  // "--name: what is wrong", in the words of the parser
      throw ConfigError(what.substr(0, what.find(':')) + ": a flag takes one value and is given once");
    }
    for (auto const& extra : app_.remaining()) refuse(extra);
    return !help_asked_;
  }
  [[nodiscard]] std::string help() const { return app_.help(); }

 private:
  [[noreturn]] void refuse(std::string const& argument) const {
    if (argument.size() < 2 || argument[0] != '-')
      throw ConfigError("unexpected argument \"" + argument + "\": flags begin with --, and each takes one value");
    auto const name = argument.substr(0, argument.find('='));
    throw ConfigError("unknown flag " + name + "; the nearest is " + nearest(name, known_) +
                      " (--help lists them all)");
  }

  CLI::App app_;
  bool help_asked_ = false;
  std::vector<std::string> known_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::app
