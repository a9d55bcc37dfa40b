// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/core/folder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE std::filesystem::path cache_folder() {
  auto const folder = [](char const* variable) {
    char const* const value = std::getenv(variable);
    return std::filesystem::path(value && value[0] == '/' ? value : "");
  };
  if (auto const cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache / "lockstep";
  if (auto const home = folder("HOME"); !home.empty()) return home / ".cache" / "lockstep";
  return std::filesystem::path(temporary_folder()) / ("lockstep-" + std::to_string(::geteuid()));
}

}}}  // namespace lockstep::app

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE std::string recipe_of(std::filesystem::path const& folder) {
  constexpr std::uint64_t most = 65'536;
  try {
    auto const path = (folder / "synthetic.txt").string();
    auto const file = open_regular_file(path);
    if (!file.is_own() || file.size() > most) return {};
    return read_text_at(file.file.get(), 0, file.size(), path, "the recipe");
  } catch (DataError const&) {
    return {};
  }
}

LOCKSTEP_INLINE bool is_own_folder(std::filesystem::path const& folder) {
  struct ::stat found {};
  return ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && (found.st_mode & S_IWOTH) == 0 &&
         (found.st_uid == ::geteuid() || found.st_uid == 0);
}

}}}  // namespace lockstep::app::detail
