// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/detail/find_files.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// A text and the number of its class.
struct LabelledText {
  std::string text;
  std::int32_t label = 0;
};

/// Handling of a pattern that matches no file.
enum class Unmatched {
  refuse,  ///< throw
  skip,    ///< leave it out, and also its class if no other pattern of the class matches
};

struct LabelledFilesOptions {
  Index window_bytes = 256;    ///< length of a sample
  Index min_bytes = 64;        ///< a file with fewer bytes after its head has no sample
  Index files_per_class = 0;   ///< maximum files of a class, evenly over their sorted paths; 0: all
  Index windows_per_file = 0;  ///< maximum windows of a file, evenly over its length; 0: all
  Unmatched unmatched = Unmatched::refuse;
};

/// Reads windows of text files as samples. Patterns "NAME=GLOB,NAME=GLOB,..." give the class of each file. `*`, `?` and
/// `[...]` match within a name, `**` any depth of folders. A NAME may occur several times. The head of each file, min(2
/// KiB, half of the file), is skipped, because license banners would reveal the class. Windows of one file form a
/// group, which `hold_out` keeps together. Drops empty files, and repeated names of a file (hard and symbolic
/// links). `**` does not follow links to folders.
/// The order is by class, then path, then place. Copies share the index. A file is open only while one of its windows
/// is read. Thread-safe.
/// @throws ConfigError if the patterns are malformed, an option is out of range, or there are fewer than two classes
/// @throws DataError if a pattern matches no file or a class has no sample
/// @throws DataError from `get` if a file cannot be read or has become shorter
class LabelledFilesDataset {
 public:
  explicit LabelledFilesDataset(std::string_view patterns, LabelledFilesOptions options = {}) {
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
      throw ConfigError("LabelledFilesDataset: \"" + std::string(patterns) + "\" names " +
                        std::to_string(files.size()) +
                        " classes; classification needs at least two: NAME=GLOB,NAME=GLOB");
    }
    Seen seen;
    for (std::size_t label = 0; label < files.size(); ++label)
      add_class(*index, label, std::move(files[label]), seen, options);
    index_ = std::move(index);
  }

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(index_->windows.size()); }
  [[nodiscard]] LabelledText get(Index i) const {
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

  /// Returns a hash of the files' paths and classes, and of the windows' places; not of the files' bytes.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    std::uint64_t hash = 0;
    for (auto const& each : index_->files) hash = mix(hash, mix(each.path), static_cast<std::uint64_t>(each.label));
    for (auto const& each : index_->windows) hash = mix(hash, each.file, each.offset, each.bytes);
    return hash;
  }
  /// Returns the number of files with samples.
  [[nodiscard]] Index groups() const noexcept { return static_cast<Index>(index_->files.size()); }
  [[nodiscard]] Index group(Index i) const noexcept {
    return static_cast<Index>(index_->windows[static_cast<std::size_t>(i)].file);
  }
  [[nodiscard]] std::string const& path(Index group) const noexcept {
    return index_->files[static_cast<std::size_t>(group)].path;
  }
  /// Returns the names of the classes in the order of their labels.
  [[nodiscard]] std::vector<std::string> const& classes() const noexcept { return index_->classes; }

 private:
  struct File {
    std::string path;
    std::int32_t label;
  };
  struct Window {
    std::size_t file, offset, bytes;
  };
  struct IndexOfWindows {
    std::vector<std::string> classes;
    std::vector<File> files;
    std::vector<Window> windows;
  };

  /// Files that a class has taken: the devices on which an inode was seen, nearly always one.
  using Seen = std::unordered_map<std::uint64_t, std::vector<std::uint64_t>>;
  static bool first_seen(Seen& seen, std::uint64_t device, std::uint64_t inode) {
    auto& devices = seen[inode];
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return false;
    devices.push_back(device);
    return true;
  }

  static void add_class(IndexOfWindows& index, std::size_t label, std::vector<detail::FoundFile> found, Seen& seen,
                        LabelledFilesOptions const& options) {
    std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
    std::erase_if(found, [&](auto const& file) {
      return file.bytes - head(file.bytes) < options.min_bytes || !first_seen(seen, file.device, file.inode);
    });
    if (found.empty()) {
      throw DataError("LabelledFilesDataset: no file of class " + index.classes[label] + " has " +
                      std::to_string(options.min_bytes) +
                      " bytes after its head, without the files of earlier classes");
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
  static Index head(Index bytes) noexcept { return std::min<Index>(2048, bytes / 2); }
  /// Returns at most `limit` numbers of [0, count), evenly spread; all of them if `limit` is 0.
  static std::vector<Index> evenly(Index count, Index limit) {
    auto const n = limit == 0 ? count : std::min(count, limit);
    std::vector<Index> out(static_cast<std::size_t>(n));
    for (Index k = 0; k < n; ++k) out[static_cast<std::size_t>(k)] = k * count / n;
    return out;
  }

  std::shared_ptr<IndexOfWindows const> index_;
};
static_assert(GroupedDataset<LabelledFilesDataset>);

}}}  // namespace lockstep::data
