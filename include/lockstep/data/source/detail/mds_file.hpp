// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the path of a shard's file. @throws DataError if the index names a file outside the folder
inline std::string mds_file(std::string const& folder, json::Value const& file) {
  auto const& basename = file.at("basename").string();
  auto const path = folder + "/" + basename;
  if (basename.find('/') != std::string::npos)
    throw DataError(path + ": a shard must be in the same folder as its index");
  return path;
}

}}}  // namespace lockstep::data::detail
