// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace lockstep_bench {

/// A temporary folder of files of one size: in LOCKSTEP_BENCH_FOLDER, or in the folder for temporary files.
class FilesFolder {
 public:
  FilesFolder(int count, std::size_t bytes) : count_(count) {
    auto const* folder = std::getenv("LOCKSTEP_BENCH_FOLDER");
    path_ = (folder ? std::filesystem::path(folder) : std::filesystem::temp_directory_path()) /
            ("lockstep-files-" + std::to_string(getpid()));
    std::filesystem::create_directories(path_ / "samples");
    std::vector<char> const content(bytes, 3);
    for (int i = 0; i < count; ++i) write(file(path(), i), content);
    write(lock_file(path()), {});
  }
  ~FilesFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FilesFolder(FilesFolder const&) = delete;
  FilesFolder& operator=(FilesFolder const&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] int count() const noexcept { return count_; }

  static std::string file(std::string const& folder, int i) { return folder + "/samples/" + std::to_string(i); }
  static std::string lock_file(std::string const& folder) { return folder + "/lock"; }

 private:
  static void write(std::string const& path, std::vector<char> const& content) {
    auto* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }

  std::filesystem::path path_;
  int count_;
};

}  // namespace lockstep_bench
