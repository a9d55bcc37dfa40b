// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/find_files.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE FileSearch::FileSearch(std::string_view pattern, FolderLinks links) : links_(links) {
  auto rest = pattern;
  while (!rest.empty()) {
    auto const part = rest.substr(0, rest.find('/'));
    if (!part.empty()) parts_.emplace_back(part);
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  if (!parts_.empty() && parts_.back() == "**") parts_.emplace_back("*");
  if (!parts_.empty()) descend(pattern.starts_with('/') ? "/" : "", 0);
}

LOCKSTEP_INLINE void FileSearch::descend(std::string const& folder, std::size_t level) {
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

LOCKSTEP_INLINE bool FileSearch::is_folder_to_descend(std::string const& path) const {
  struct ::stat status {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  if (S_ISLNK(status.st_mode) && (links_ == FolderLinks::skip || ::stat(path.c_str(), &status) != 0)) return false;
  if (!S_ISDIR(status.st_mode)) return false;
  auto const target = std::pair(status.st_dev, status.st_ino);
  return std::find(containing_.begin(), containing_.end(), target) == containing_.end();
}

LOCKSTEP_INLINE void FileSearch::visit(std::string const& path, std::size_t level) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return throw_unless_missing(path);  // else a dangling link, or deleted meanwhile
  if (level + 1 < parts_.size()) {
    if (S_ISDIR(status.st_mode)) descend(path + "/", level + 1);
  } else if (S_ISREG(status.st_mode)) {
    found_.push_back({path, status.st_dev, status.st_ino, status.st_size});
  }
}

LOCKSTEP_INLINE void FileSearch::throw_unless_missing(std::string const& path) {
  auto const error = errno;
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) return;
  throw DataError((path.empty() ? "." : path) + ": cannot be searched: " + system_message(error) +
                  (error == EMFILE || error == ENFILE ? "; raise how many files may be open (ulimit -n)"
                                                      : "; check its permissions"));
}

LOCKSTEP_INLINE std::vector<std::string> FileSearch::names(std::string const& folder) {
  std::vector<std::string> out;
  auto const close = [](DIR* open) { ::closedir(open); };
  std::unique_ptr<DIR, decltype(close)> const open(::opendir(folder.empty() ? "." : folder.c_str()), close);
  if (!open) {
    throw_unless_missing(folder);
    return out;
  }
  for (;;) {
    errno = 0;  // readdir returns null at the end, and if it fails
    auto const* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    std::string_view const name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  if (errno != 0) throw_unless_missing(folder);
  return out;
}

LOCKSTEP_INLINE std::vector<FoundFile> find_files(std::string_view pattern, FolderLinks links) {
  auto found = FileSearch(pattern, links).take();
  std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
  auto const same = [](auto const& a, auto const& b) { return a.path == b.path; };  // a pattern may match in two ways
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

LOCKSTEP_INLINE std::vector<FoundFile> find_at_least_one_file(std::string_view pattern, std::string const& caller,
                                                              FolderLinks links) {
  auto found = find_files(pattern, links);
  if (found.empty())
    throw DataError(caller +
                    " matches no file; check the path, and quote the pattern so that the shell leaves it alone");
  return found;
}

}}}  // namespace lockstep::data::detail
