// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>

#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// @throws DataError if anything has this path, also a pipe, a device or a link: it stays as it is
inline void refuse_existing(std::string const& path) {
  struct ::stat found {};
  if (::lstat(path.c_str(), &found) == 0) throw DataError(path + ": exists already; remove it, or name another file");
}

}}}  // namespace lockstep::data::detail
