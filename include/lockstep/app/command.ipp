// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>
#include <CLI/CLI.hpp>

#include <lockstep/app/command.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE Command::Command(std::string what) : app_(std::make_unique<CLI::App>(std::move(what))) {
  app_->set_help_flag();
  app_->add_flag("-h,--help", help_asked_, "Print this help and exit");
  app_->allow_extras();
}

LOCKSTEP_INLINE Command::~Command() {}

LOCKSTEP_INLINE void Command::group(std::string const& heading) { app_->option_defaults()->group(heading); }

LOCKSTEP_INLINE void Command::add(std::string const& names, std::string const& help,
                                  std::function<void(std::string const&, std::string const&)> const& take,
                                  Takes takes) {
  auto& flag = enter(names, take, takes);
  flag.option = app_->add_option_function<std::string>(
      names, [name = flag.name, take](std::string const& text) { take(name, text); }, help);
  flag.option->type_name("");
}

LOCKSTEP_INLINE void Command::add(OptionDescriptor const& option, std::string const& initial) {
  auto const variable = option.flag.words.empty() ? option.variable : option.variable.with_words(option.flag.words);
  std::string const names(option.flag.names);
  std::string help(option.flag.help);
  if (auto const at = help.find("{}"); at != std::string::npos) help.replace(at, 2, initial);
  if (!option.flag.heading.empty()) group(std::string(option.flag.heading));
  auto const range = option.flag.range.value_or(option.range);
  if (!variable.words().empty()) {
    std::vector<std::string> words;
    for (auto const& each : variable.words()) words.emplace_back(each.word);
    add_words(names, std::move(words), variable.text(), help,
              [variable](std::size_t i) { variable.write(variable.words()[i].value); });
    flags_.back().value = [variable] { return variable.text().empty() ? not_given : variable.text(); };
  } else if (variable.kind() == OptionVariable::Kind::boolean) {
    add(names, variable.boolean(), help);
  } else if (variable.kind() == OptionVariable::Kind::text) {
    add(names, variable.string(), help);
  } else if (variable.kind() == OptionVariable::Kind::real) {
    add_number<double>(names, variable, range, help);
  } else if (variable.kind() == OptionVariable::Kind::natural) {
    add_number<std::uint64_t>(names, variable, range, help);
  } else {
    add_number<Index>(names, variable, range, help);
  }
  names_.add_synonyms(option.flag.names.substr(0, option.flag.names.find(',')), option.flag.synonyms);
}

LOCKSTEP_INLINE void Command::add(OptionDescriptor const& option,
                                  std::function<void(std::string const&, std::string const&)> const& take,
                                  Takes takes) {
  if (!option.flag.heading.empty()) group(std::string(option.flag.heading));
  add(std::string(option.flag.names), std::string(option.flag.help), take, takes);
  names_.add_synonyms(option.flag.names.substr(0, option.flag.names.find(',')), option.flag.synonyms);
}

template <class Value>
void Command::add_number(std::string const& names, OptionVariable const& variable, OptionRange const& range,
                         std::string const& help) {
  auto const least = std::isinf(range.least) ? std::numeric_limits<Value>::lowest() : static_cast<Value>(range.least),
             most = std::isinf(range.most) ? std::numeric_limits<Value>::max() : static_cast<Value>(range.most);
  add(names, help + " (" + detail::range_sentence(least, most) + default_of(variable.text()) + ")",
      [variable, least, most](auto const& name, auto const& text) {
        auto const value = detail::parse_number<Value>(name, text, least, most);
        if constexpr (std::is_floating_point_v<Value>)
          variable.write(value);
        else
          variable.write(static_cast<Index>(value));
      });
  flags_.back().value = [variable] { return variable.text().empty() ? not_given : variable.text(); };
}

LOCKSTEP_INLINE void Command::add_words(std::string const& names, std::vector<std::string> words,
                                        std::string const& initial, std::string const& help,
                                        std::function<void(std::size_t)> const& set) {
  std::string all;
  for (auto const& word : words) all += (all.empty() ? "" : ", ") + word;
  add(names, help + " (" + all + default_of(initial) + ")", [words, all, set](auto const& name, auto const& text) {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == text || words[i] == detail::FlagNames::with_dashes(text)) return set(i);
    throw ConfigError(name + " " + text + ": must be one of " + all + "; the nearest is " + nearest(text, words));
  });
}

LOCKSTEP_INLINE void Command::add(std::string const& names, bool& value, std::string const& help) {
  auto& flag = enter(
      names,
      [&value](auto const& name, auto const& text) {
        auto const boolean = text == "True" ? "true" : text == "False" ? "false" : text;
        if (boolean != "true" && boolean != "false") throw ConfigError(name + " " + text + ": must be true or false");
        value = boolean == "true";
      },
      Takes::value);
  flag.option = app_->add_flag(names, value, help);
  flag.value = [&value] { return std::string(value ? "true" : "false"); };
}

LOCKSTEP_INLINE void Command::add_synonyms() {
  names_.add_synonyms();
  app_->footer(
      "Common synonyms such as hidden_size, n_heads and learning_rate are accepted, with - or _;\n"
      "docs/reference/command-line.md lists them.");
}

LOCKSTEP_INLINE void Command::add_config() {
  add(config_flag, config_,
      "YAML or JSON file with values of flags, or - for the standard input; the command line takes precedence");
}

LOCKSTEP_INLINE void Command::add(std::string const& names, std::string& value, std::string const& help) {
  add(names, help + (value.empty() ? "" : " (default " + value + ")"), [&value](auto const& name, auto const& text) {
    if (text.empty()) throw ConfigError(name + " '': must not be empty; leave the flag out for the default");
    value = text;
  });
  flags_.back().value = [&value] { return value.empty() ? not_given : value; };
  flags_.back().is_text = true;
}

LOCKSTEP_INLINE bool Command::parse(int argc, char const* const* argv) {
  if (!parse_arguments(argc, argv)) return false;
  read_config();
  return true;
}

LOCKSTEP_INLINE bool Command::parse_arguments(int argc, char const* const* argv) {
  auto const words = translated_arguments(argc, argv);
  std::vector<char const*> pointers;
  for (auto const& word : words) pointers.push_back(word.c_str());
  try {
    app_->parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (CLI::ConversionError const& error) {  // "Could not convert: --name = value", for a flag without a value
    std::string const what = error.what();
    throw ConfigError(what.substr(std::min(what.find("--"), what.size())) + ": the flag takes no value");
  } catch (CLI::ParseError const& error) {
    std::string const what = error.what();  // "--name: reason", in the parser's words
    auto const name = what.substr(0, what.find(':'));
    auto const* const flag = find(name);
    throw flag && flag->option->count() > 1 ? given_twice(name) : without_value(name);
  }
  for (auto const& extra : app_->remaining()) refuse(extra);
  return !help_asked_;
}

LOCKSTEP_INLINE void Command::read_config() {
  if (!config_.empty()) apply(detail::ConfigFile(config_).read());
}

LOCKSTEP_INLINE std::vector<std::string> Command::arguments(int argc, char const* const* argv) const {
  std::vector<std::string> all;
  for (int i = 0; i < argc; ++i) {
    std::string_view const argument = argv[i];
    if (argument == config_flag) ++i;
    if (argument != config_flag && !argument.starts_with(std::string(config_flag) + "=")) all.emplace_back(argument);
  }
  all.insert(all.end(), configured_.begin(), configured_.end());
  return all;
}

LOCKSTEP_INLINE std::vector<std::pair<std::string, std::string>> Command::values(std::size_t known) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto i = known; i < flags_.size(); ++i)
    if (flags_[i].value && !flags_[i].is_text) all.emplace_back(flags_[i].name, flags_[i].value());
  return all;
}

LOCKSTEP_INLINE std::vector<std::pair<std::string, std::string>> Command::settings() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto const& flag : flags_)
    if (auto const shown = flag.value ? flag.value() : not_given; shown != not_given)
      all.emplace_back(flag.name, shown);
  return all;
}

LOCKSTEP_INLINE std::vector<std::string> Command::text_flags() const {
  std::vector<std::string> all;
  for (auto const& flag : flags_)
    if (flag.is_text) all.push_back(flag.name);
  return all;
}

LOCKSTEP_INLINE std::string Command::lines(std::size_t known) const {
  std::string all;
  for (auto const& [name, value] : values(known))
    if (value != not_given) all += name + "=" + value + "\n";
  return all;
}

LOCKSTEP_INLINE std::vector<std::string> Command::adopt(std::string const& lines, std::size_t known) {
  std::vector<std::string> changed;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    auto const name = line.substr(0, line.find('='));
    for (auto i = known; i < flags_.size() && name.size() < line.size(); ++i) {
      auto const& flag = flags_[i];
      auto const value = line.substr(name.size() + 1);
      if (flag.name != name || !flag.value || given(name) || flag.value() == value) continue;
      flag.take(name, value);
      changed.push_back(line);
    }
  }
  return changed;
}

LOCKSTEP_INLINE std::vector<std::string> Command::given() const {
  std::vector<std::string> all;
  for (auto const& flag : flags_)
    if (flag.option->count() > 0 || flag.line != 0) all.push_back(flag.name);
  return all;
}

LOCKSTEP_INLINE bool Command::given(std::string_view name) const {
  return std::any_of(flags_.begin(), flags_.end(), [&](Flag const& flag) {
    return flag.name == name && (flag.option->count() > 0 || flag.line != 0);
  });
}

LOCKSTEP_INLINE std::string Command::help() const { return app_->help(); }

LOCKSTEP_INLINE Command::Flag& Command::enter(std::string const& names,
                                              std::function<void(std::string const&, std::string const&)> take,
                                              Takes takes) {
  names_.enter(names);
  return flags_.emplace_back(Flag{names.substr(0, names.find(',')), std::move(take), takes});
}

LOCKSTEP_INLINE std::vector<std::string> Command::translated_arguments(int argc, char const* const* argv) {
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
    std::string const next = whole || i + 1 == argc ? "" : argv[i + 1];
    if (auto const* const flag = find(name);
        flag && flag->option->get_expected_min() > 0 && find(next.substr(0, next.find('='))))
      throw without_value(name);
    auto const value = whole ? word.substr(name.size() + 1) : follows ? argv[i + 1] : "true";
    auto const given_value = name.starts_with("--") ? names_.read(name, value) : std::nullopt;
    if (given_value) all.push_back(*given_value);
    if (!given_value)
      words.push_back(word);
    else if (given_value->as_is)
      words.push_back(flags_[*given_value->flag].name + word.substr(name.size()));
    else
      i += follows;
  }
  detail::FlagNames::resolve_duplicates(all, [](auto const& first, auto const& second) {
    if (first.name == second.name) throw given_twice(first.name);
    throw ConfigError(second.name + ": another name of " + first.name + ", and a flag is given once; leave out one");
  });
  for (auto const& given_value : all) {
    if (!given_value.flag || given_value.as_is || given_value.dropped) continue;
    auto const& flag = flags_[*given_value.flag].name;
    words.push_back(flag + "=" + given_value.values[0]);
    names_.note_choice(given_value, flag);
  }
  return words;
}

LOCKSTEP_INLINE Command::Flag const* Command::find(std::string const& name) const {
  if (!name.starts_with("--")) return nullptr;
  auto const found =
      std::find_if(flags_.begin(), flags_.end(), [&](Flag const& each) { return each.option->check_name(name); });
  return found == flags_.end() ? nullptr : &*found;
}

LOCKSTEP_INLINE ConfigError Command::given_twice(std::string const& name) {
  return ConfigError(name + ": a flag takes one value and is given once; leave out all but one");
}

LOCKSTEP_INLINE ConfigError Command::without_value(std::string const& name) {
  return ConfigError(name + ": a flag takes one value and is given once; the value is missing: write " + name +
                     " VALUE");
}

LOCKSTEP_INLINE std::vector<std::string> Command::config_names() const {
  auto names = names_.known();
  std::erase(names, config_flag);
  return names;
}

LOCKSTEP_INLINE void Command::apply(std::vector<detail::Setting> const& settings) {
  auto const where = [this](std::size_t line) { return config_ + ":" + std::to_string(line) + ": "; };
  auto const with_line = [&](std::size_t line, auto&& f) {
    try {
      return f();
    } catch (ConfigError const& error) {
      throw ConfigError(where(line) + error.what());
    }
  };
  std::vector<detail::NamedValue> all;
  for (auto const& setting : settings) {
    auto given_value = with_line(setting.line, [&] { return names_.read(setting.name, setting.value); });
    if (!given_value || (given_value->flag && flags_[*given_value->flag].name == config_flag))
      throw ConfigError(where(setting.line) + "unknown name " + setting.name + "; the nearest is " +
                        nearest("--" + setting.name, config_names()).substr(2) + " (--help lists them all)");
    if (setting.is_list && !(given_value->flag && flags_[*given_value->flag].takes == Takes::list))
      throw ConfigError(where(setting.line) + setting.name + " [" + setting.value + "]: takes one value, not a list");
    given_value->line = setting.line;
    all.push_back(*given_value);
  }
  detail::FlagNames::resolve_duplicates(all, [&](auto const& first, auto const& second) {
    throw ConfigError(where(second.line) + second.name + " is given by line " + std::to_string(first.line) +
                      " too; leave out one");
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& given_value = all[i];
    if (given_value.dropped) continue;
    if (given_value.flag) {
      auto& flag = flags_[*given_value.flag];
      flag.line = given_value.line;
      if (flag.option->count() > 0) continue;
      with_line(given_value.line, [&] { flag.take(flag.name, given_value.values[0]); });
      names_.note_choice(given_value, flag.name);
    }
    configured_.push_back((given_value.as_is ? flags_[*given_value.flag].name : "--" + given_value.name) + "=" +
                          settings[i].value);
  }
}

LOCKSTEP_INLINE void Command::refuse(std::string const& argument) const {
  if (argument == "true" || argument == "false")
    throw ConfigError(
        "unexpected argument \"" + argument +
        "\": flags begin with --, and each takes one value, or none; a switch takes true or false after =, "
        "as --dry-run=" +
        argument);
  if (argument.size() < 2 || argument[0] != '-')
    throw ConfigError("unexpected argument \"" + argument +
                      "\": flags begin with --, and each takes one value, or none, as --help");
  auto const name = argument.substr(0, argument.find('='));
  auto const close = nearest(name, names_.known()), own = names_.flag_of_synonym(close);
  throw ConfigError("unknown flag " + name + "; the nearest is " + close +
                    (own.empty() ? "" : ", another name of " + own) + " (--help lists them all)");
}

}}}  // namespace lockstep::app
