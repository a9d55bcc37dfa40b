// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/data/source/detail/npy_header.hpp>
#include <lockstep/data/source/detail/zip_directory.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// One array of a .npz file, by name; rows are read from the archive where they lie.
/// @throws DataError when the file is damaged, has no such array, or the array is compressed (np.savez stores)
/// @source PKWARE APPNOTE 6.3, with Zip64
[[nodiscard]] inline FileArray open_npz(std::string const& path, std::string_view name) {
  auto file = std::make_shared<detail::DataFile const>(path);
  auto const entries = detail::read_zip_directory(*file);
  auto const wanted = std::string(name) + ".npy";
  auto const found =
      std::find_if(entries.begin(), entries.end(), [&](auto const& each) { return each.name == wanted; });
  if (found == entries.end()) {
    std::vector<std::string> names;
    for (auto const& each : entries)
      if (each.name.ends_with(".npy")) names.push_back(each.name.substr(0, each.name.size() - 4));
    auto const near = nearest(name, names);
    file->fail("has no array \"" + std::string(name) + "\" among its " + std::to_string(names.size()) +
               (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"));
  }
  return detail::npy_at(file, detail::zip_data_offset(*file, *found), found->bytes, "\"" + std::string(name) + "\"");
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
