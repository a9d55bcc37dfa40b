// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <yaml.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// One `name: value` of a configuration file.
struct Setting {
  std::string name;
  std::string value;  ///< items of a list are separated by commas
  bool is_list = false;
  std::size_t line = 0;  ///< from 1
};

/// Reads names and values from a YAML file, and so from JSON, which is a subset. Names may be in sections, one level
/// deep. Names without a value, or with null, are ignored.
class ConfigFile {
 public:
  /// @throws ConfigError if the file cannot be opened; names it and the system's reason
  explicit ConfigFile(std::string path);
  ConfigFile(ConfigFile const&) = delete;
  ConfigFile& operator=(ConfigFile const&) = delete;
  ~ConfigFile();

  /// Returns the settings. Call it once.
  /// @throws ConfigError with file and line if the file is not YAML or not of this form
  [[nodiscard]] std::vector<Setting> read();

 private:
  void read_section(bool inside);

  yaml_event_type_t next();
  [[nodiscard]] std::size_t line() const noexcept { return event_.start_mark.line + 1; }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_null() const;
  [[noreturn]] void refuse(std::string const& what) const { refuse(what, line()); }
  [[noreturn]] void refuse(std::string const& what, std::size_t line) const;

  std::string path_;
  std::FILE* file_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Setting> settings_;
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/config_file.ipp>
#endif
