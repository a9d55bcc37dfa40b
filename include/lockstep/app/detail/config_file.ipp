// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/config_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE ConfigFile::ConfigFile(std::string path) : path_(std::move(path)), text_(text_of(path_)) {
  if (yaml_parser_initialize(&parser_) == 0) throw ConfigError("--config " + path_ + ": no memory to read it");
  yaml_parser_set_input_string(&parser_, reinterpret_cast<unsigned char const*>(text_.data()), text_.size());
}

LOCKSTEP_INLINE ConfigFile::~ConfigFile() {
  yaml_event_delete(&event_);
  yaml_parser_delete(&parser_);
}

LOCKSTEP_INLINE bool ConfigFile::names_descriptor(std::string const& path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         (path.starts_with("/proc/") && path.find("/fd/") != std::string::npos);
}

LOCKSTEP_INLINE std::string ConfigFile::text_of(std::string const& path) {
  auto const refuse = [&](std::string const& why) { throw ConfigError("--config " + path + ": " + why); };
  FileDescriptor const file = path == "-" ? FileDescriptor(::dup(STDIN_FILENO)) : FileDescriptor(path);
  struct ::stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) refuse("cannot be opened: " + system_message(errno));
  if (S_ISDIR(found.st_mode)) throw ConfigError(path + ": is not YAML or JSON: it is a directory; name a file");
  if (!S_ISREG(found.st_mode) && !S_ISCHR(found.st_mode) && !names_descriptor(path))
    refuse(
        "is not a regular file, and its writer may never come; write --config - and connect the pipe to the "
        "standard input");
  std::string text;
  for (;;) {
    constexpr std::size_t piece = std::size_t{1} << 16;
    auto const done = text.size();
    text.resize(done + piece);
    auto const got = ::read(file.get(), text.data() + done, piece);
    auto const error = errno;
    text.resize(done + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return text;
    if (text.size() > max_bytes)
      refuse("has more than " + std::to_string(max_bytes) + " bytes, as no configuration has; is it another file?");
    if (got > 0 || error == EINTR) continue;
    if (error != EAGAIN) refuse("cannot be read: " + system_message(error));
    ::pollfd polled{file.get(), POLLIN, 0};
    static_cast<void>(::poll(&polled, 1, -1));  // a signal ends the program, since no rank has started
  }
}

LOCKSTEP_INLINE std::vector<Setting> ConfigFile::read() {
  next();                                          // begins the stream
  if (next() == YAML_STREAM_END_EVENT) return {};  // comments at most
  if (next() == YAML_SCALAR_EVENT && is_null()) return {};
  if (event_.type != YAML_MAPPING_START_EVENT) refuse("must be a name with a value, as in \"epochs: 3\"");
  read_section(false);
  next();  // ends the document
  if (next() != YAML_STREAM_END_EVENT) refuse("begins a second document, but a file holds one");
  return std::move(settings_);
}

LOCKSTEP_INLINE void ConfigFile::read_section(bool inside) {
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

LOCKSTEP_INLINE yaml_event_type_t ConfigFile::next() {
  yaml_event_delete(&event_);
  if (yaml_parser_parse(&parser_, &event_) == 0) {
    bool const has_line = parser_.error == YAML_SCANNER_ERROR || parser_.error == YAML_PARSER_ERROR;
    throw ConfigError(path_ + (has_line ? ":" + std::to_string(parser_.problem_mark.line + 1) : "") +
                      ": is not YAML or JSON: " + (parser_.problem ? parser_.problem : "cannot be read"));
  }
  return event_.type;
}

LOCKSTEP_INLINE std::string ConfigFile::text() const {
  auto const& scalar = event_.data.scalar;
  std::string text(reinterpret_cast<char const*>(scalar.value), scalar.length);
  if (text.find('\0') != std::string::npos) refuse("holds a zero byte");
  return text;
}

LOCKSTEP_INLINE bool ConfigFile::is_null() const {
  auto const& scalar = event_.data.scalar;
  if (scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
  auto const word = text();
  return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

LOCKSTEP_INLINE void ConfigFile::refuse(std::string const& what, std::size_t line) const {
  throw ConfigError(path_ + ":" + std::to_string(line) + ": " + what);
}

}}}  // namespace lockstep::app::detail
