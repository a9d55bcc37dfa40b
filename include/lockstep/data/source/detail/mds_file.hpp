// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the path of a shard's file, in the folder or below it, as merge_index of MosaicML's Streaming writes paths.
/// @throws DataError if the index names a file outside the folder
inline std::string mds_file(std::string const& folder, json::Value const& file) {
  auto const& basename = file.at("basename").string();
  auto const path = folder + "/" + basename;
  auto const leaves_folder = [](std::string_view parts) {
    if (parts.starts_with('/')) return true;
    while (!parts.empty()) {
      auto const part = parts.substr(0, parts.find('/'));
      if (part == "..") return true;
      parts.remove_prefix(std::min(parts.size(), part.size() + 1));
    }
    return false;
  };
  if (leaves_folder(basename)) throw DataError(path + ": a shard must be in the folder of its index or below it");
  return path;
}

}}}  // namespace lockstep::data::detail
