// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/labelled_files_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE LabelledFilesDataset::LabelledFilesDataset(std::string_view patterns, LabelledFilesOptions options) {
  if (options.window_bytes < 1 || options.min_bytes < 1 || options.files_per_class < 0 ||
      options.windows_per_file < 0) {
    throw ConfigError(
        "LabelledFilesDataset: window_bytes and min_bytes must be at least 1, files_per_class and "
        "windows_per_file at least 0");
  }
  auto index = std::make_shared<IndexOfWindows>();
  std::vector<std::vector<detail::FoundFile>> files;
  for (auto rest = patterns; !rest.empty();) {
    auto const item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    auto const equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size()) {
      throw ConfigError("LabelledFilesDataset: \"" + std::string(item) +
                        "\" is not a class; write NAME=GLOB,NAME=GLOB, for instance "
                        "c=/usr/include/*.h,cmake=/usr/share/**/*.cmake");
    }
    auto const name = item.substr(0, equals), pattern = item.substr(equals + 1);
    auto found = options.unmatched == Unmatched::skip
                     ? detail::find_files(pattern, detail::FolderLinks::skip)
                     : detail::find_at_least_one_file(pattern,
                                                      "LabelledFilesDataset: the pattern \"" + std::string(pattern) +
                                                          "\" of class " + std::string(name),
                                                      detail::FolderLinks::skip);
    if (found.empty()) continue;
    auto const known = std::find(index->classes.begin(), index->classes.end(), name);
    auto const label = static_cast<std::size_t>(known - index->classes.begin());
    if (known == index->classes.end()) {
      index->classes.emplace_back(name);
      files.emplace_back();
    }
    std::move(found.begin(), found.end(), std::back_inserter(files[label]));
  }
  if (files.size() < 2) {
    throw ConfigError("LabelledFilesDataset: \"" + std::string(patterns) + "\" names " + std::to_string(files.size()) +
                      " classes; classification needs at least two: NAME=GLOB,NAME=GLOB");
  }
  Seen seen;
  for (std::size_t label = 0; label < files.size(); ++label)
    add_class(*index, label, std::move(files[label]), seen, options);
  index_ = std::move(index);
}

LOCKSTEP_INLINE LabelledText LabelledFilesDataset::get(Index i) const {
  auto const& window = index_->windows[static_cast<std::size_t>(i)];
  auto const& file = index_->files[window.file];
  FileDescriptor const open(file.path);
  if (open.get() < 0) throw DataError(file.path + ": cannot be opened: " + system_message(errno));
  std::string text(window.bytes, '\0');
  auto const got = read_at(open.get(), text.data(), text.size(), window.offset, file.path);
  if (got != text.size()) {
    throw DataError(file.path + ": ends at byte " + std::to_string(window.offset + got) + ", but reached byte " +
                    std::to_string(window.offset + window.bytes) +
                    " when it was indexed; leave the files alone while training");
  }
  return {std::move(text), file.label};
}

LOCKSTEP_INLINE std::uint64_t LabelledFilesDataset::fingerprint() const noexcept {
  std::uint64_t hash = 0;
  for (auto const& each : index_->files) hash = mix(hash, mix(each.path), static_cast<std::uint64_t>(each.label));
  for (auto const& each : index_->windows) hash = mix(hash, each.file, each.offset, each.bytes);
  return hash;
}

LOCKSTEP_INLINE Index LabelledFilesDataset::group(Index i) const noexcept {
  return static_cast<Index>(index_->windows[static_cast<std::size_t>(i)].file);
}

LOCKSTEP_INLINE std::string const& LabelledFilesDataset::path(Index group) const noexcept {
  return index_->files[static_cast<std::size_t>(group)].path;
}

LOCKSTEP_INLINE bool LabelledFilesDataset::first_seen(Seen& seen, std::uint64_t device, std::uint64_t inode) {
  auto& devices = seen[inode];
  if (std::find(devices.begin(), devices.end(), device) != devices.end()) return false;
  devices.push_back(device);
  return true;
}

LOCKSTEP_INLINE void LabelledFilesDataset::add_class(IndexOfWindows& index, std::size_t label,
                                                     std::vector<detail::FoundFile> found, Seen& seen,
                                                     LabelledFilesOptions const& options) {
  std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
  std::erase_if(found, [&](auto const& file) {
    return file.bytes - head(file.bytes) < options.min_bytes || !first_seen(seen, file.device, file.inode);
  });
  if (found.empty()) {
    throw DataError("LabelledFilesDataset: no file of class " + index.classes[label] + " has " +
                    std::to_string(options.min_bytes) + " bytes after its head, without the files of earlier classes");
  }
  for (auto const k : evenly(static_cast<Index>(found.size()), options.files_per_class)) {
    auto& file = found[static_cast<std::size_t>(k)];
    auto const begin = head(file.bytes), rest = file.bytes - begin;
    auto const window = std::min(rest, options.window_bytes);
    for (auto const w : evenly(rest / window, options.windows_per_file)) {
      index.windows.push_back(
          {index.files.size(), static_cast<std::size_t>(begin + w * window), static_cast<std::size_t>(window)});
    }
    index.files.push_back({std::move(file.path), static_cast<std::int32_t>(label)});
  }
}

LOCKSTEP_INLINE std::vector<Index> LabelledFilesDataset::evenly(Index count, Index limit) {
  auto const n = limit == 0 ? count : std::min(count, limit);
  std::vector<Index> out(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) out[static_cast<std::size_t>(k)] = k * count / n;
  return out;
}

}}}  // namespace lockstep::data
