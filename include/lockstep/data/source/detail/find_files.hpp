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
  FileSearch(std::string_view pattern, FolderLinks links) : links_(links) {
    auto rest = pattern;
    while (!rest.empty()) {
      auto const part = rest.substr(0, rest.find('/'));
      if (!part.empty()) parts_.emplace_back(part);
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    }
    if (!parts_.empty() && parts_.back() == "**") parts_.emplace_back("*");
    if (!parts_.empty()) descend(pattern.starts_with('/') ? "/" : "", 0);
  }
  std::vector<FoundFile> take() && { return std::move(found_); }

 private:
  void descend(std::string const& folder, std::size_t level) {
    auto const& part = parts_[level];
    if (part == "**") {
      descend(folder, level + 1);
      struct ::stat status {};
      if (::stat(folder.empty() ? "." : folder.c_str(), &status) != 0) status = {};
      containing_.emplace_back(status.st_dev, status.st_ino);
      for (auto const& name : names(folder))
        if (name[0] != '.' && is_folder_to_descend(folder + name)) descend(folder + name + "/", level);
      containing_.pop_back();
    } else if (part.find_first_of("*?[") == std::string::npos) {
      visit(folder + part, level);
    } else {
      for (auto const& name : names(folder)) {
        if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) visit(folder + name, level);
      }
    }
  }
  [[nodiscard]] bool is_folder_to_descend(std::string const& path) const {
    struct ::stat status {};
    if (::lstat(path.c_str(), &status) != 0) return false;
    if (S_ISLNK(status.st_mode) && (links_ == FolderLinks::skip || ::stat(path.c_str(), &status) != 0)) return false;
    if (!S_ISDIR(status.st_mode)) return false;
    auto const target = std::pair(status.st_dev, status.st_ino);
    return std::find(containing_.begin(), containing_.end(), target) == containing_.end();
  }
  void visit(std::string const& path, std::size_t level) {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0)
      return throw_if_forbidden(path);  // else a dangling link, or deleted meanwhile
    if (level + 1 < parts_.size()) {
      if (S_ISDIR(status.st_mode)) descend(path + "/", level + 1);
    } else if (S_ISREG(status.st_mode)) {
      found_.push_back({path, status.st_dev, status.st_ino, status.st_size});
    }
  }
  /// Throws for missing permissions, which would silently leave out files.
  static void throw_if_forbidden(std::string const& path) {
    if (errno == EACCES)
      throw DataError(path + ": cannot be searched: " + system_message(errno) + "; check its permissions");
  }
  static std::vector<std::string> names(std::string const& folder) {
    std::vector<std::string> out;
    auto const close = [](DIR* open) { ::closedir(open); };
    std::unique_ptr<DIR, decltype(close)> const open(::opendir(folder.empty() ? "." : folder.c_str()), close);
    if (!open) {
      throw_if_forbidden(folder);
      return out;
    }
    while (auto const* entry = ::readdir(open.get())) {
      std::string_view const name = entry->d_name;
      if (name != "." && name != "..") out.emplace_back(name);
    }
    return out;
  }

  FolderLinks links_;
  std::vector<std::pair<::dev_t, ::ino_t>>
      containing_;  // device and inode of the folders on the way to the current one
  std::vector<std::string> parts_;
  std::vector<FoundFile> found_;
};

/// Returns the regular files whose path matches, each once, in the order of their paths. `*`, `?` and `[...]` match
/// within a name, `**` any depth of folders. Names that begin with a dot match only a pattern that begins with a dot.
inline std::vector<FoundFile> find_files(std::string_view pattern, FolderLinks links) {
  auto found = FileSearch(pattern, links).take();
  std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
  auto const same = [](auto const& a, auto const& b) { return a.path == b.path; };  // a pattern may match in two ways
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

/// As `find_files`, but at least one file.
/// @param caller the caller and its pattern, for the message
/// @throws DataError if no file matches
inline std::vector<FoundFile> find_at_least_one_file(std::string_view pattern, std::string const& caller,
                                                     FolderLinks links) {
  auto found = find_files(pattern, links);
  if (found.empty())
    throw DataError(caller +
                    " matches no file; check the path, and quote the pattern so that the shell leaves it alone");
  return found;
}

}}}  // namespace lockstep::data::detail
