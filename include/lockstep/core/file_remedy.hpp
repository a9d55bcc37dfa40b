// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cerrno>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns advice to follow the system's reason when a file cannot be written; empty if the reason is enough.
[[nodiscard]] inline char const* file_remedy(int reason) noexcept {
  switch (reason) {
    case ENOENT:
      return "; make its folder first; ~ is not expanded";
    case ENOSPC:
    case EDQUOT:
      return "; make room there, or write to another place";
    case EFBIG:
      return "; raise the limit on the size of files (ulimit -f unlimited)";
    case EACCES:
    case EPERM:
      return "; change its permissions, or write to another place";
    case EROFS:
      return "; mount it writable, or write to another place";
    case EPIPE:
      return "; its reader has ended";
    default:
      return "";
  }
}

}}  // namespace lockstep
