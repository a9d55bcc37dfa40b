// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace lockstep_test {

/// A folder of its own that goes with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;

  [[nodiscard]] std::string path(std::string const& name) const { return path_ + "/" + name; }
  /// Writes a file, folders above it included; its path.
  std::string write(std::string const& name, std::string const& content) const {
    auto const at = path(name);
    std::filesystem::create_directories(std::filesystem::path(at).parent_path());
    std::ofstream(at, std::ios::binary) << content;
    return at;
  }

 private:
  std::string path_;
};

}  // namespace lockstep_test
