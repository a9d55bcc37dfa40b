// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

struct FoundFile {
  std::string path;
  std::uint64_t device = 0, inode = 0;  // equal for two names of one file
  Index bytes = 0;
};

/// Handling of links to folders by `**`.
enum class FolderLinks {
  follow,  ///< links are followed, but a folder is not searched again below itself
  skip,
};

/// Directory walk of `find_files`: one component of the pattern per level.
class FileSearch {
 public:
  FileSearch(std::string_view pattern, FolderLinks links);
  std::vector<FoundFile> take() && { return std::move(found_); }

 private:
  void descend(std::string const& folder, std::size_t level);
  [[nodiscard]] bool is_folder_to_descend(std::string const& path) const;
  void visit(std::string const& path, std::size_t level);
  /// Throws for the reason in `errno`, which would silently leave out files. Only what is not there may be left out.
  static void throw_unless_missing(std::string const& path);
  static std::vector<std::string> names(std::string const& folder);

  FolderLinks links_;
  std::vector<std::pair<::dev_t, ::ino_t>>
      containing_;  // device and inode of the folders on the way to the current one
  std::vector<std::string> parts_;
  std::vector<FoundFile> found_;
};

/// Returns the regular files whose path matches, each once, in the order of their paths. `*`, `?` and `[...]` match
/// within a name, `**` any depth of folders. Names that begin with a dot match only a pattern that begins with a dot.
std::vector<FoundFile> find_files(std::string_view pattern, FolderLinks links);

/// As `find_files`, but at least one file.
/// @param caller the caller and its pattern, for the message
/// @throws DataError if no file matches
std::vector<FoundFile> find_at_least_one_file(std::string_view pattern, std::string const& caller, FolderLinks links);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/find_files.ipp>
#endif
