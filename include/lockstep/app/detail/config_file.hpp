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
  explicit ConfigFile(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "re")) {
    if (!file_) throw ConfigError("--config " + path_ + ": cannot be opened: " + std::strerror(errno));
    if (yaml_parser_initialize(&parser_) == 0) {
      std::fclose(file_);
      throw ConfigError("--config " + path_ + ": no memory to read it");
    }
    yaml_parser_set_input_file(&parser_, file_);
  }
  ConfigFile(ConfigFile const&) = delete;
  ConfigFile& operator=(ConfigFile const&) = delete;
  ~ConfigFile() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
    std::fclose(file_);
  }

  /// Returns the settings. Call it once.
  /// @throws ConfigError with file and line if the file is not YAML or not of this form
  [[nodiscard]] std::vector<Setting> read() {
    next();                                          // begins the stream
    if (next() == YAML_STREAM_END_EVENT) return {};  // comments at most
    if (next() == YAML_SCALAR_EVENT && is_null()) return {};
    if (event_.type != YAML_MAPPING_START_EVENT) refuse("must be a name with a value, as in \"epochs: 3\"");
    read_section(false);
    next();  // ends the document
    if (next() != YAML_STREAM_END_EVENT) refuse("begins a second document, but a file holds one");
    return std::move(settings_);
  }

 private:
  void read_section(bool inside) {
    while (next() != YAML_MAPPING_END_EVENT) {
      if (event_.type != YAML_SCALAR_EVENT) refuse("must be a name with a value, as in \"epochs: 3\"");
      Setting setting{text(), {}, false, line()};
      switch (next()) {
        case YAML_SCALAR_EVENT:
          if (is_null()) continue;
          setting.value = text();
          break;
        case YAML_SEQUENCE_START_EVENT:
          setting.is_list = true;
          while (next() != YAML_SEQUENCE_END_EVENT) {
            if (event_.type != YAML_SCALAR_EVENT || is_null()) refuse(setting.name + ": a list holds single values");
            setting.value += (setting.value.empty() ? "" : ",") + text();
          }
          break;
        case YAML_MAPPING_START_EVENT:
          if (inside) refuse(setting.name + ": a section within a section; use one level", setting.line);
          read_section(true);
          continue;
        default:
          refuse(setting.name + ": references to other values (*name) are not followed; write the value itself");
      }
      settings_.push_back(std::move(setting));
    }
  }

  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      bool const placed = parser_.error == YAML_SCANNER_ERROR || parser_.error == YAML_PARSER_ERROR;
      throw ConfigError(path_ + (placed ? ":" + std::to_string(parser_.problem_mark.line + 1) : "") +
                        ": is not YAML or JSON: " + (parser_.problem ? parser_.problem : "cannot be read"));
    }
    return event_.type;
  }
  [[nodiscard]] std::size_t line() const noexcept { return event_.start_mark.line + 1; }
  [[nodiscard]] std::string text() const {
    auto const& scalar = event_.data.scalar;
    std::string text(reinterpret_cast<char const*>(scalar.value), scalar.length);
    if (text.find('\0') != std::string::npos) refuse("holds a zero byte");
    return text;
  }
  [[nodiscard]] bool is_null() const {
    auto const& scalar = event_.data.scalar;
    if (scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    auto const word = text();
    return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
  }
  [[noreturn]] void refuse(std::string const& what) const { refuse(what, line()); }
  [[noreturn]] void refuse(std::string const& what, std::size_t line) const {
    throw ConfigError(path_ + ":" + std::to_string(line) + ": " + what);
  }

  std::string path_;
  std::FILE* file_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Setting> settings_;
};

}}}  // namespace lockstep::app::detail
