// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/cache_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE data::TokenCacheOptions cache_options(Options const& options, std::string const& flag, bool verifies,
                                                      Progress& progress) {
  data::TokenCacheOptions out;
  out.threads = options.cores;
  out.verify = verifies;
  out.progress = &progress;
  if (flag == "none") return out;
  out.folder = flag;
  if (!flag.empty()) return out;
  out.min_bytes = std::uint64_t{8} << 20;
  auto const folder = cache_folder();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0 && detail::is_own_folder(folder))
    out.folder = folder.string();
  return out;
}

}}}  // namespace lockstep::app
