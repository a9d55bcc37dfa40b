// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep_bench {

/// A temporary file of clips, 17x256x256 bytes each: in the given folder, in LOCKSTEP_BENCH_FOLDER, or in the folder
/// for temporary files. Its folder has no entry for it, so that a benchmark that is killed leaves nothing.
class ClipsFile {
 public:
  explicit ClipsFile(int count, char const* folder = nullptr) {
    if (folder == nullptr) folder = std::getenv("LOCKSTEP_BENCH_FOLDER");
    auto const parent = folder ? std::filesystem::path(folder) : std::filesystem::temp_directory_path();
    auto path = (parent / "bench-clips-XXXXXX").string();
    descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw std::runtime_error("cannot write " + path);
    ::unlink(path.c_str());
    std::vector<char> const clip(17 * 256 * 256, 3);
    for (int i = 0; i < count; ++i)
      if (::write(descriptor_, clip.data(), clip.size()) != static_cast<ssize_t>(clip.size()))
        throw std::runtime_error(path + ": no space for " + std::to_string(count) + " clips");
  }
  ~ClipsFile() { ::close(descriptor_); }
  ClipsFile(ClipsFile const&) = delete;
  ClipsFile& operator=(ClipsFile const&) = delete;

  /// Returns a path to the file for this process and its peers.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

}  // namespace lockstep_bench
