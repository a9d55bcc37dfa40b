// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <lockstep/app/detail/config_file.hpp>
#include <lockstep/app/detail/flag_names.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/nearest.hpp>

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
  explicit Command(std::string what = "") : app_(std::move(what)) {
    app_.set_help_flag();
    app_.add_flag("-h,--help", help_asked_, "Print this help and exit");
    app_.allow_extras();
  }
  Command(Command const&) = delete;
  Command& operator=(Command const&) = delete;

  /// Sets the heading in --help for the flags that are added next.
  void group(std::string const& heading) { app_.option_defaults()->group(heading); }

  /// Adds a flag whose value take(name, value) reads; `names` may have aliases: "--parallel,--multi-gpu".
  void add(std::string const& names, std::string const& help,
           std::function<void(std::string const&, std::string const&)> const& take, Takes takes = Takes::value) {
    auto& flag = enter(names, take, takes);
    flag.option = app_.add_option_function<std::string>(
        names, [name = flag.name, take](std::string const& text) { take(name, text); }, help);
    flag.option->type_name("");
  }
  /// Adds a flag without a value, which sets `value`.
  void add(std::string const& names, bool& value, std::string const& help) {
    auto& flag = enter(
        names,
        [&value](auto const& name, auto const& text) {
          auto const truth = text == "True" ? "true" : text == "False" ? "false" : text;
          if (truth != "true" && truth != "false") throw ConfigError(name + " " + text + ": must be true or false");
          value = truth == "true";
        },
        Takes::value);
    flag.option = app_.add_flag(names, value, help);
    flag.value = [&value] { return std::string(value ? "true" : "false"); };
  }
  /// Accepts the synonyms of other trainers for these flags, and settings that are constant here, as
  /// detail/synonyms.hpp lists them.
  void add_synonyms() {
    names_.add_synonyms();
    app_.footer(
        "Common synonyms such as hidden_size, n_heads and learning_rate are accepted, with - or _;\n"
        "docs/reference/command-line.md lists them.");
  }
  /// Adds --config FILE, whose values apply to flags that are not on the command line.
  void add_config() {
    add(config_flag, config_, "YAML or JSON file with values of flags; the command line takes precedence");
  }

  template <class T>
  void add(std::string const& names, T& value, std::type_identity_t<T> least, std::type_identity_t<T> most,
           std::string const& help) {
    add(names, help + " (" + detail::range_sentence(least, most) + "; default " + detail::shortest(value) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_number<T>(name, text, least, most);
        });
    flags_.back().value = [&value] { return detail::shortest(value); };
  }
  template <class T>
  void add(std::string const& names, std::optional<T>& value, std::type_identity_t<T> least,
           std::type_identity_t<T> most, std::string const& help) {
    add(names,
        help + " (" + detail::range_sentence(least, most) + default_of(value ? detail::shortest(*value) : "") + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_number<T>(name, text, least, most);
        });
    flags_.back().value = [&value] { return value ? detail::shortest(*value) : not_given; };
  }
  /// Adds a flag of several numbers, separated by commas.
  template <class T>
  void add(std::string const& names, std::vector<T>& value, std::type_identity_t<T> least, std::type_identity_t<T> most,
           std::string const& help) {
    auto const text_of = [&value] {
      std::string text;
      for (auto const& each : value) text += (text.empty() ? "" : ",") + detail::shortest(each);
      return text;
    };
    add(
        names, help + " (a list, each " + detail::range_sentence(least, most) + default_of(text_of()) + ")",
        [&value, least, most](auto const& name, auto const& text) {
          value = detail::parse_numbers<T>(name, text, least, most);
        },
        Takes::list);
    flags_.back().value = [text_of] { return text_of().empty() ? not_given : text_of(); };
  }
  void add(std::string const& names, std::string& value, std::string const& help) {
    add(names, help + (value.empty() ? "" : " (default " + value + ")"), [&value](auto const& name, auto const& text) {
      if (text.empty()) throw ConfigError(name + " '': must not be empty; leave the flag out for the default");
      value = text;
    });
    flags_.back().value = [&value] { return value.empty() ? not_given : value; };
    flags_.back().is_text = true;
  }
  /// Adds a flag of one word of a list; each word stands for a value.
  template <class T>
  void add(std::string const& names, T& value, std::vector<std::pair<std::string, std::type_identity_t<T>>> choices,
           std::string const& help) {
    std::vector<std::string> words;
    std::string all, own;
    for (auto const& [word, meaning] : choices) {
      words.push_back(word);
      all += (all.empty() ? "" : ", ") + word;
      if constexpr (std::equality_comparable<T>)
        if (value == meaning) own = word;
    }
    add(names, help + " (" + all + default_of(own) + ")",
        [&value, choices, words, all](auto const& name, auto const& text) {
          for (auto const& [word, meaning] : choices) {
            if (word != text && word != detail::FlagNames::with_dashes(text)) continue;
            value = meaning;
            return;
          }
          throw ConfigError(name + " " + text + ": must be one of " + all + "; the nearest is " + nearest(text, words));
        });
    if constexpr (std::equality_comparable<T>)
      flags_.back().value = [&value, choices] {
        for (auto const& [word, meaning] : choices)
          if (value == meaning) return word;
        return not_given;
      };
  }
  /// Adds a flag of several words of a list, separated by commas; each word stands for a value, "none" for no value.
  template <class T>
  void add(std::string const& names, std::vector<T>& value,
           std::vector<std::pair<std::string, std::type_identity_t<T>>> choices, std::string const& help) {
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
  [[nodiscard]] bool parse(int argc, char const* const* argv) {
    if (!parse_arguments(argc, argv)) return false;
    read_config();
    return true;
  }
  /// Implements the first part of `parse`, whose result does not depend on the host.
  [[nodiscard]] bool parse_arguments(int argc, char const* const* argv) {
    auto const words = own_words(argc, argv);
    std::vector<char const*> pointers;
    for (auto const& word : words) pointers.push_back(word.c_str());
    try {
      app_.parse(static_cast<int>(pointers.size()), pointers.data());
    } catch (CLI::ConversionError const& error) {  // "Could not convert: --name = value", for a flag without a value
      std::string const what = error.what();
      throw ConfigError(what.substr(std::min(what.find("--"), what.size())) + ": the flag takes no value");
    } catch (CLI::ParseError const& error) {
      std::string const what = error.what();  // "--name: reason", in the parser's words
      throw ConfigError(what.substr(0, what.find(':')) + ": a flag takes one value and is given once");
    }
    for (auto const& extra : app_.remaining()) refuse(extra);
    return !help_asked_;
  }
  /// Implements the second part of `parse`.
  void read_config() {
    if (!config_.empty()) apply(detail::ConfigFile(config_).read());
  }
  /// Returns whether the arguments name a configuration file.
  [[nodiscard]] bool has_config() const noexcept { return !config_.empty(); }
  /// Returns an equivalent command line without the configuration file, which may change or disappear. Call after
  /// `parse`.
  [[nodiscard]] std::vector<std::string> arguments(int argc, char const* const* argv) const {
    std::vector<std::string> all;
    for (int i = 0; i < argc; ++i) {
      std::string_view const argument = argv[i];
      if (argument == config_flag) ++i;
      if (argument != config_flag && !argument.starts_with(std::string(config_flag) + "=")) all.emplace_back(argument);
    }
    all.insert(all.end(), configured_.begin(), configured_.end());
    return all;
  }
  /// Returns names and values of the flags after the first `known`, including defaults. It omits flags of strings,
  /// which may be paths, and flags that the caller reads. Call after `parse`.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> values(std::size_t known = 0) const {
    std::vector<std::pair<std::string, std::string>> all;
    for (auto i = known; i < flags_.size(); ++i)
      if (flags_[i].value && !flags_[i].is_text) all.emplace_back(flags_[i].name, flags_[i].value());
    return all;
  }
  /// Returns names and values of all flags, except flags without a value and those that the caller reads. Call after
  /// `parse`.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (auto const& flag : flags_)
      if (auto const says = flag.value ? flag.value() : not_given; says != not_given) all.emplace_back(flag.name, says);
    return all;
  }
  /// Returns the flags that were given, by their first names. Call after `parse`.
  [[nodiscard]] std::vector<std::string> given() const {
    std::vector<std::string> all;
    for (auto const& flag : flags_)
      if (flag.option->count() > 0 || flag.line != 0) all.push_back(flag.name);
    return all;
  }
  [[nodiscard]] bool given(std::string_view name) const {
    return std::any_of(flags_.begin(), flags_.end(), [&](Flag const& flag) {
      return flag.name == name && (flag.option->count() > 0 || flag.line != 0);
    });
  }
  /// Returns one sentence for each setting that was accepted without effect, and for each choice. Call after `parse`.
  [[nodiscard]] std::vector<std::string> notes() const { return names_.notes(); }
  /// Returns the number of flags.
  [[nodiscard]] std::size_t size() const noexcept { return flags_.size(); }
  [[nodiscard]] std::string help() const { return app_.help(); }

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
  static std::string default_of(std::string const& value) { return value.empty() ? "" : "; default " + value; }
  Flag& enter(std::string const& names, std::function<void(std::string const&, std::string const&)> take, Takes takes) {
    names_.enter(names);
    return flags_.emplace_back(Flag{names.substr(0, names.find(',')), std::move(take), takes});
  }

  /// Translates the command line to the flags' own names and values.
  [[nodiscard]] std::vector<std::string> own_words(int argc, char const* const* argv) {
    std::vector<std::string> words(argv, argv + std::min(argc, 1));
    std::vector<detail::NamedValue> all;
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      if (word == "--") {
        words.insert(words.end(), argv + i, argv + argc);
        break;
      }
      auto const name = word.substr(0, word.find('='));
      bool const whole = name.size() < word.size(), follows = !whole && i + 1 < argc && argv[i + 1][0] != '-';
      auto const value = whole ? word.substr(name.size() + 1) : follows ? argv[i + 1] : "true";
      auto const said = name.starts_with("--") ? names_.read(name, value) : std::nullopt;
      if (said) all.push_back(*said);
      if (!said)
        words.push_back(word);
      else if (said->as_is)
        words.push_back(flags_[*said->flag].name + word.substr(name.size()));
      else
        i += follows;
    }
    detail::FlagNames::settle(all, [](auto const& first, auto const& second) {
      if (first.name == second.name) throw ConfigError(first.name + ": a flag takes one value and is given once");
      throw ConfigError(second.name + ": another name of " + first.name + ", and a flag is given once; leave out one");
    });
    for (auto const& said : all) {
      if (!said.flag || said.as_is || said.dropped) continue;
      auto const& flag = flags_[*said.flag].name;
      words.push_back(flag + "=" + said.values[0]);
      names_.note_choice(said, flag);
    }
    return words;
  }

  /// Returns the names that a configuration file may use: all except --config.
  [[nodiscard]] std::vector<std::string> nameable() const {
    auto names = names_.known();
    std::erase(names, config_flag);
    return names;
  }
  void apply(std::vector<detail::Setting> const& settings) {
    auto const where = [this](std::size_t line) { return config_ + ":" + std::to_string(line) + ": "; };
    auto const placed = [&](std::size_t line, auto&& f) {
      try {
        return f();
      } catch (ConfigError const& error) {
        throw ConfigError(where(line) + error.what());
      }
    };
    std::vector<detail::NamedValue> all;
    for (auto const& setting : settings) {
      auto said = placed(setting.line, [&] { return names_.read(setting.name, setting.value); });
      if (!said || (said->flag && flags_[*said->flag].name == config_flag))
        throw ConfigError(where(setting.line) + "unknown name " + setting.name + "; the nearest is " +
                          nearest("--" + setting.name, nameable()).substr(2) + " (--help lists them all)");
      if (setting.is_list && !(said->flag && flags_[*said->flag].takes == Takes::list))
        throw ConfigError(where(setting.line) + setting.name + " [" + setting.value + "]: takes one value, not a list");
      said->line = setting.line;
      all.push_back(*said);
    }
    detail::FlagNames::settle(all, [&](auto const& first, auto const& second) {
      throw ConfigError(where(second.line) + second.name + " is given by line " + std::to_string(first.line) +
                        " too; leave out one");
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const& said = all[i];
      if (said.dropped) continue;
      if (said.flag) {
        auto& flag = flags_[*said.flag];
        flag.line = said.line;
        if (flag.option->count() > 0) continue;
        placed(said.line, [&] { flag.take(flag.name, said.values[0]); });
        names_.note_choice(said, flag.name);
      }
      configured_.push_back((said.as_is ? flags_[*said.flag].name : "--" + said.name) + "=" + settings[i].value);
    }
  }
  [[noreturn]] void refuse(std::string const& argument) const {
    if (argument.size() < 2 || argument[0] != '-')
      throw ConfigError("unexpected argument \"" + argument +
                        "\": flags begin with --, and each takes one value, or none, as --help");
    auto const name = argument.substr(0, argument.find('='));
    throw ConfigError("unknown flag " + name + "; the nearest is " + nearest(name, names_.known()) +
                      " (--help lists them all)");
  }

  CLI::App app_;
  bool help_asked_ = false;
  detail::FlagNames names_;
  std::vector<Flag> flags_;
  std::string config_;
  std::vector<std::string> configured_;  // flags that the configuration file sets
};

}}}  // namespace lockstep::app
