// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the folder for temporary files: TMPDIR, or /tmp if it is unset or empty. The folder may not exist.
[[nodiscard]] inline std::string temporary_folder() {
  char const* const folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

/// Returns `path` if it exists, or else the nearest of its parents that does: there, mkdir would have to write.
[[nodiscard]] inline std::string nearest_existing(std::string path) {
  while (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) && path.size() > 1) {
    auto const slash = path.find_last_of('/');
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

}}  // namespace lockstep
