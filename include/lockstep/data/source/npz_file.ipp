// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/npz_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (auto const& each : directory_.entries)
    if (each.name.ends_with(".npy")) names.push_back(each.name.substr(0, each.name.size() - 4));
  return names;
}

LOCKSTEP_INLINE FileArray NpzFile::array(std::string_view name) const {
  auto const found = find(name);
  if (found == directory_.entries.end()) {
    auto const all = names();
    auto const near = nearest(name, all);
    file_->fail("has no array \"" + std::string(name) + "\" among its " + std::to_string(all.size()) +
                (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"));
  }
  auto const same = [&](auto const& other) { return other.name == found->name; };
  if (std::any_of(found + 1, directory_.entries.end(), same))
    file_->fail("has two arrays \"" + std::string(name) + "\"; write it again, with each name once");
  auto const offset = detail::zip_data_offset(*file_, directory_, *found);
  if (checksums_ == NpzChecksums::verify) detail::check_zip_crc(*file_, *found, offset);
  return detail::npy_at(file_, offset, found->bytes, "\"" + std::string(name) + "\"");
}

LOCKSTEP_INLINE std::vector<detail::ZipEntry>::const_iterator NpzFile::find(std::string_view name) const {
  return std::find_if(directory_.entries.begin(), directory_.entries.end(),
                      [wanted = std::string(name) + ".npy"](auto const& each) { return each.name == wanted; });
}

}}}  // namespace lockstep::data
