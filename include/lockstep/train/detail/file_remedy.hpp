// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cerrno>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

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
    default:
      return "";
  }
}

}}}  // namespace lockstep::train::detail
