// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// One `name: value` of a configuration file.
struct Setting {
  std::string name;
  std::string value;  ///< items of a list are separated by commas
  bool is_list = false;
  std::size_t line = 0;  ///< from 1
};

/// Reads names and values from a YAML file, and so from JSON, which is a subset. "-" is the standard input, which may
/// be a pipe. Names may be in sections, one level deep. Names without a value, or with null, are ignored.
class ConfigFile {
 public:
  /// Limit for the bytes of a file.
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;

  /// Reads the text. Never waits for the writer of a named pipe, which is refused.
  /// @throws ConfigError if the file cannot be opened or read, or is too long; names it and the system's reason
  explicit ConfigFile(std::string path);
  ConfigFile(ConfigFile const&) = delete;
  ConfigFile& operator=(ConfigFile const&) = delete;
  ~ConfigFile();

  /// Returns the settings. Call it once.
  /// @throws ConfigError with file and line if the file is not YAML or not of this form
  [[nodiscard]] std::vector<Setting> read();

 private:
  /// Whether a path names an open descriptor, as /dev/stdin and the /dev/fd/63 of a shell's <(...) do.
  [[nodiscard]] static bool names_descriptor(std::string const& path);
  [[nodiscard]] static std::string text_of(std::string const& path);
  void read_section(bool inside);

  yaml_event_type_t next();
  [[nodiscard]] std::size_t line() const noexcept { return event_.start_mark.line + 1; }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_null() const;
  [[noreturn]] void refuse(std::string const& what) const { refuse(what, line()); }
  [[noreturn]] void refuse(std::string const& what, std::size_t line) const;

  std::string path_, text_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<Setting> settings_;
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/config_file.ipp>
#endif
