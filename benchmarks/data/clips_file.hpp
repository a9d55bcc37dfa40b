// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep_bench {

/// A temporary file of clips, 17x256x256 bytes each: in the given folder, in LOCKSTEP_BENCH_FOLDER, or in the folder
/// for temporary files.
class ClipsFile {
 public:
  explicit ClipsFile(int count, char const* folder = nullptr) {
    if (folder == nullptr) folder = std::getenv("LOCKSTEP_BENCH_FOLDER");
    path_ = (folder ? std::filesystem::path(folder) : std::filesystem::temp_directory_path()) / "lockstep-clips.bin";
    std::vector<char> const clip(17 * 256 * 256, 3);
    auto* const file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr) throw std::runtime_error("cannot write " + path_.string());
    for (int i = 0; i < count; ++i) std::fwrite(clip.data(), 1, clip.size(), file);
    std::fclose(file);
  }
  ~ClipsFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ClipsFile(ClipsFile const&) = delete;
  ClipsFile& operator=(ClipsFile const&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep_bench
