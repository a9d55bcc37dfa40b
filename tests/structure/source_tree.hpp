// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Functions that read the files of this repository for the structure tests.
namespace lockstep_test {

inline std::filesystem::path const source_root = LOCKSTEP_SOURCE_DIR;

/// The folders of include/lockstep from left to right. Folders of one floor do not see each other.
struct Floor {
  std::string_view folder;
  int height;
};
inline constexpr std::array<Floor, 13> floors{{{"core", 0},
                                               {"memory", 1},
                                               {"data", 2},
                                               {"kernel", 2},
                                               {"nn", 3},
                                               {"optim", 4},
                                               {"launch", 5},
                                               {"comm", 6},
                                               {"parallel", 7},
                                               {"train", 8},
                                               {"scaling", 9},
                                               {"app", 10},
                                               {"interop", 10}}};

/// Returns the floor of `folder`, or -1 for an unknown folder.
inline int height(std::string_view folder) {
  auto at = std::find_if(floors.begin(), floors.end(), [&](Floor const& f) { return f.folder == folder; });
  return at == floors.end() ? -1 : at->height;
}

/// Returns the part of `path` before its first slash; empty without one.
inline std::string_view folder_of(std::string_view path) {
  auto slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

/// The room of a header: the folder below its floor, such as gemm for kernel/gemm/detail/a.hpp. Headers of the floor
/// itself, and those of its own detail/, share the empty room, on which the others stand.
inline std::string_view room_of(std::string_view path) {
  path.remove_prefix(std::min(path.size(), folder_of(path).size() + 1));
  if (path == "deprecated.hpp") return path;  // names of all rooms
  auto const room = folder_of(path);
  return room == "detail" ? std::string_view{} : room;
}

inline bool is_detail(std::string_view path) { return path.find("/detail/") != std::string_view::npos; }

inline std::vector<std::string> lines_of(std::filesystem::path const& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the files below `folder` that end in one of `extensions`, relative to it, sorted.
inline std::vector<std::string> files_below(std::filesystem::path const& folder,
                                            std::vector<std::string_view> const& extensions) {
  std::vector<std::string> found;
  for (auto const& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::string const path = entry.path().lexically_relative(folder).string();
    bool const wanted = std::any_of(extensions.begin(), extensions.end(), [&](auto e) { return path.ends_with(e); });
    if (entry.is_regular_file() && wanted) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Returns the library's headers, relative to include/lockstep.
inline std::vector<std::string> library_headers() {
  return files_below(source_root / "include/lockstep", {".hpp", ".cuh"});
}

/// The library's headers, and the implementation files of functions that headers only declare.
inline std::vector<std::string> library_files() {
  return files_below(source_root / "include/lockstep", {".hpp", ".cuh", ".ipp", ".icuh"});
}

/// Returns the header that a line includes, with its brackets or quotes, or nothing.
inline std::string included_by(std::string_view line) {
  auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  auto take = [&](std::string_view word) {
    skip_blanks();
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  if (!take("#") || !take("include")) return {};
  skip_blanks();
  if (line.empty()) return {};
  auto const close = line.find(line.front() == '<' ? '>' : line.front(), 1);
  return std::string(line.substr(0, close == std::string_view::npos ? close : close + 1));
}

}  // namespace lockstep_test
