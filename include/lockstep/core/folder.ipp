// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/folder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE std::string temporary_folder() {
  char const* const folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

LOCKSTEP_COLD_INLINE std::string nearest_existing(std::string path) {
  while (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) && path.size() > 1) {
    auto const slash = path.find_last_of('/');
    path = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

}}  // namespace lockstep
