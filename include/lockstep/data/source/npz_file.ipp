// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/npz_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (auto const& each : entries_)
    if (each.name.ends_with(".npy")) names.push_back(each.name.substr(0, each.name.size() - 4));
  return names;
}

LOCKSTEP_INLINE FileArray NpzFile::array(std::string_view name) const {
  auto const found = find(name);
  if (found == entries_.end()) {
    auto const all = names();
    auto const near = nearest(name, all);
    file_->fail("has no array \"" + std::string(name) + "\" among its " + std::to_string(all.size()) +
                (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"));
  }
  return detail::npy_at(file_, detail::zip_data_offset(*file_, *found), found->bytes, "\"" + std::string(name) + "\"");
}

LOCKSTEP_INLINE std::vector<detail::ZipEntry>::const_iterator NpzFile::find(std::string_view name) const {
  return std::find_if(entries_.begin(), entries_.end(),
                      [wanted = std::string(name) + ".npy"](auto const& each) { return each.name == wanted; });
}

}}}  // namespace lockstep::data
