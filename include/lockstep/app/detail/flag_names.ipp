// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/flag_names.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void FlagNames::enter(std::string const& names) {
  auto& own = flags_.emplace_back();
  std::istringstream list(names);
  for (std::string each; std::getline(list, each, ',');) {
    known_.push_back(each);
    own.push_back(with_dashes(each));
  }
}

LOCKSTEP_INLINE void FlagNames::add_synonyms(std::string_view flag, std::string_view synonyms) {
  if (synonyms.empty()) return;
  auto const after = [](std::string_view name, OtherNames const& row) { return name < row.flag; };
  others_.insert(std::upper_bound(others_.begin(), others_.end(), flag, after), {flag, synonyms});
}

LOCKSTEP_INLINE std::string FlagNames::with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

LOCKSTEP_INLINE std::optional<std::size_t> FlagNames::find(std::string_view name) const {
  for (std::size_t i = 0; i < flags_.size(); ++i)
    if (std::find(flags_[i].begin(), flags_[i].end(), name) != flags_[i].end()) return i;
  return {};
}

LOCKSTEP_INLINE std::optional<NamedValue> FlagNames::read(std::string const& given, std::string const& value) {
  auto const name = with_dashes(given.starts_with("--") ? given : "--" + given);
  if (auto const flag = find(name)) return NamedValue{.flag = flag, .name = given, .values = {value}, .as_is = true};
  if (!synonyms_) return {};
  auto const bare = std::string_view(name).substr(2);
  for (auto const& row : others_)
    if (has_word(row.names, bare))
      return NamedValue{.flag = offered(row, given), .name = given, .values = {value}, .as_is = true};
  if (auto const* const row = row_of(translations, bare)) {
    auto const meaning = translate(*row, value);
    if (!meaning.known)
      throw ConfigError(given + " " + value + ": must be one of " + words_of(*row) + "; it is another name of " +
                        std::string(row->flag));
    NamedValue given_value{.name = given, .values = meaning.values};
    if (!meaning.values.empty()) given_value.flag = offered({row->flag, ""}, given);
    return given_value;
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

LOCKSTEP_INLINE void FlagNames::note_choice(NamedValue const& given_value, std::string const& flag) {
  if (given_value.values.size() > 1)
    notes_.push_back(bare(given_value.name) + " means " + flag + " " + given_value.values[0] +
                     " here; the other choice is " + flag + " " + given_value.values[1]);
}

LOCKSTEP_INLINE std::vector<std::string> FlagNames::notes() const {
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

LOCKSTEP_INLINE std::vector<std::string> FlagNames::known() const {
  auto all = known_;
  if (!synonyms_) return all;
  auto const add = [&](std::string_view names) {
    any_word(names, [&](std::string_view name) {
      all.push_back("--" + std::string(name));
      return false;
    });
  };
  for (auto const& row : others_)
    if (find(row)) add(row.names);
  for (auto const& row : translations)
    if (find(row.flag)) add(row.names);
  for (auto const& row : constants) add(row.names);
  return all;
}

LOCKSTEP_INLINE std::string FlagNames::flag_of_synonym(std::string_view name) const {
  if (find(name)) return "";
  for (auto const& row : others_)
    if (name.starts_with("--") && has_word(row.names, name.substr(2))) return std::string(row.flag);
  return "";
}

LOCKSTEP_INLINE std::optional<std::size_t> FlagNames::find(OtherNames const& row) const {
  auto found = find(row.flag);
  any_word(row.names, [&](std::string_view name) {
    if (!found) found = find("--" + std::string(name));
    return found.has_value();
  });
  return found;
}

LOCKSTEP_INLINE std::size_t FlagNames::offered(OtherNames const& row, std::string const& given) const {
  auto const found = find(row);
  if (!found)
    throw ConfigError(given + ": another name of " + std::string(row.flag) + ", which this program does not have");
  return *found;
}

LOCKSTEP_INLINE void FlagNames::accept(Constant const& row, std::string const& given, std::string const& value) {
  auto const boolean = parse_boolean(value);
  if (row.is != Always::unused && boolean != "true" && boolean != "false")
    throw ConfigError(given + " " + value + ": must be true or false");
  if ((row.is == Always::on || row.is == Always::off) && (boolean == "true") != (row.is == Always::on))
    throw ConfigError(given + " " + value + ": is not possible, because " + std::string(row.because) +
                      "; leave it out");
  std::pair const setting{bare(given), row.is};
  if (std::find(accepted_.begin(), accepted_.end(), setting) == accepted_.end()) accepted_.push_back(setting);
}

LOCKSTEP_INLINE std::string FlagNames::bare(std::string const& name) {
  return name.starts_with("--") ? name.substr(2) : name;
}

}}}  // namespace lockstep::app::detail
