// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/synthetic_data.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE std::filesystem::path cache_folder() {
  auto const folder = [](char const* variable) {
    char const* const value = std::getenv(variable);
    return std::filesystem::path(value && value[0] == '/' ? value : "");
  };
  if (auto const cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache / "lockstep";
  if (auto const home = folder("HOME"); !home.empty()) return home / ".cache" / "lockstep";
  return std::filesystem::temp_directory_path() / ("lockstep-" + std::to_string(::geteuid()));
}

}}}  // namespace lockstep::app

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE std::string recipe_of(std::filesystem::path const& folder) {
  std::ifstream file(folder / "synthetic.txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}}}  // namespace lockstep::app::detail
