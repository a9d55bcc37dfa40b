// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/folder_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE FolderDataset::FolderDataset(std::string_view pattern) {
  auto found = find(pattern);
  std::vector<std::string> classes;
  for (auto const& file : found) classes.push_back(class_of(file.path));
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  list_ = list_of(std::move(found), std::move(classes));
}

LOCKSTEP_INLINE FileSample FolderDataset::get(Index i) const {
  FileSample out{{}, file(i).label};
  auto const bytes = static_cast<std::size_t>(file(i).bytes);
  with_memory_for(file(i).path, bytes, [&] { out.bytes.resize(bytes); });
  read(file(i), out.bytes);
  return out;
}

LOCKSTEP_INLINE void FolderDataset::read_into(Index i, Row<FileSample> row) const {
  row[&FileSample::label] = file(i).label;
  read(file(i), row[&FileSample::bytes]);
}

LOCKSTEP_INLINE std::uint64_t FolderDataset::fingerprint() const noexcept {
  std::uint64_t hash = 0;
  for (auto const& each : list_->files) hash = mix(hash, mix(each.path), static_cast<std::uint64_t>(each.bytes));
  return hash;
}

LOCKSTEP_INLINE std::string FolderDataset::class_of(std::string_view path) {
  auto const slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  auto const folder = path.substr(0, slash);
  return std::string(folder.substr(folder.rfind('/') + 1));
}

LOCKSTEP_INLINE std::vector<detail::FoundFile> FolderDataset::find(std::string_view pattern) {
  return detail::find_at_least_one_file(pattern, "FolderDataset: the pattern \"" + std::string(pattern) + "\"",
                                        detail::FolderLinks::follow);
}

LOCKSTEP_INLINE std::shared_ptr<FolderDataset::List const> FolderDataset::list_of(std::vector<detail::FoundFile> found,
                                                                                  std::vector<std::string> classes) {
  std::unordered_map<std::string_view, std::int32_t> labels;
  for (auto const& name : classes)
    if (!labels.try_emplace(name, static_cast<std::int32_t>(labels.size())).second)
      throw ConfigError("FolderDataset: the class \"" + name + "\" is given twice; give each class once");
  auto list = std::make_shared<List>();
  for (auto& file : found) {
    auto const folder = class_of(file.path);
    auto const label = labels.find(folder);
    if (label == labels.end()) {
      auto const near = nearest(folder, classes);
      throw DataError(file.path + ": its folder \"" + folder + "\" is not one of the " +
                      std::to_string(classes.size()) + " classes that were given" +
                      (near.empty() ? "" : " (the nearest is \"" + near + "\")") +
                      "; move the file, or add its folder to the classes and train again");
    }
    list->files.push_back({std::move(file.path), file.bytes, label->second});
  }
  list->classes = std::move(classes);
  return list;
}

LOCKSTEP_INLINE void FolderDataset::read(File const& file, std::span<std::uint8_t> out) {
  FileDescriptor const open(file.path);
  if (open.get() < 0) throw DataError(file.path + ": cannot be opened: " + system_message(errno));
  std::size_t got = 0;
  do {  // one system call for most files: it requests one byte more than expected
    char more = 0;
    std::array<::iovec, 2> const parts{{{out.data() + got, out.size() - got}, {&more, 1}}};
    auto const n = ::preadv(open.get(), parts.data(), 2, static_cast<::off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError(file.path + ": cannot be read: " + system_message(errno));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  } while (got < out.size());
  if (got != out.size()) {
    throw DataError(file.path + ": has " + (got < out.size() ? std::to_string(got) : "more") + " bytes, and had " +
                    std::to_string(out.size()) + " when it was listed; leave the files alone while training");
  }
}

}}}  // namespace lockstep::data
