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
  std::string text;        ///< at most window_bytes bytes, cut at any byte
  std::int32_t label = 0;  ///< index in classes()
};

/// Handling of a pattern that matches no file.
enum class Unmatched {
  refuse,  ///< throw
  skip,    ///< leave it out, and also its class if no other pattern of the class matches
};

/// Options of LabelledFilesDataset: the windows of a file, and limits on their number.
struct LabelledFilesOptions {
  Index window_bytes = 256;                 ///< length of a sample
  Index min_bytes = 64;                     ///< a file with fewer bytes after its head has no sample
  Index files_per_class = 0;                ///< maximum files of a class, evenly over their sorted paths; 0: all
  Index windows_per_file = 0;               ///< maximum windows of a file, evenly over its length; 0: all
  Unmatched unmatched = Unmatched::refuse;  ///< if a pattern matches no file
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
  /// @param patterns "NAME=GLOB,NAME=GLOB,…"
  explicit LabelledFilesDataset(std::string_view patterns, LabelledFilesOptions options = {});

  /// Returns the number of windows.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(index_->windows.size()); }
  /// Reads window i of [0, size()).
  [[nodiscard]] LabelledText get(Index i) const;

  /// Returns a hash of the files' paths and classes, and of the windows' places; not of the files' bytes.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;
  /// Returns the number of files with samples.
  [[nodiscard]] Index groups() const noexcept { return static_cast<Index>(index_->files.size()); }
  /// Returns the number of the window's file, in [0, groups()).
  [[nodiscard]] Index group(Index i) const noexcept;
  /// Returns the path of a file in [0, groups()).
  [[nodiscard]] std::string const& path(Index group) const noexcept;
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
  static bool first_seen(Seen& seen, std::uint64_t device, std::uint64_t inode);

  static void add_class(IndexOfWindows& index, std::size_t label, std::vector<detail::FoundFile> found, Seen& seen,
                        LabelledFilesOptions const& options);
  static Index head(Index bytes) noexcept { return std::min<Index>(2048, bytes / 2); }
  /// Returns at most `limit` numbers of [0, count), evenly spread; all of them if `limit` is 0.
  static std::vector<Index> evenly(Index count, Index limit);

  std::shared_ptr<IndexOfWindows const> index_;
};
static_assert(GroupedDataset<LabelledFilesDataset>);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/labelled_files_dataset.ipp>
#endif
