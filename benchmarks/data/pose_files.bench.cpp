// SPDX-License-Identifier: Apache-2.0
// Samples per second that the pose-to-text reader delivers from .npy files of 30 to 600 frames of 133 joints, padded,
// against PyTorch's loader on the same files: with a team's own lock and collate, and with neither.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/data/source/write_npy.hpp>

#include "../examples/pose_to_text/data.hpp"
#include <data/loading.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;
namespace fs = std::filesystem;

namespace {

/// A temporary folder of 300 samples.
class Folder {
 public:
  Folder() {
    char const* const folder = std::getenv("LOCKSTEP_BENCH_FOLDER");
    path_ = (folder ? fs::path(folder) : fs::temp_directory_path()) / "lockstep-pose-files";
    fs::remove_all(path_);
    fs::create_directories(path_);
    std::ofstream index(path_ / "index.tsv");
    index << "file\ttext\tsplit\n";
    for (Index i = 0; i < 300; ++i) {
      auto const part = std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0);
      auto const frames = static_cast<Index>(30 * std::pow(20, part));
      std::vector<float> numbers(static_cast<std::size_t>(frames * 133 * 3));
      for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k % 1013) / 1013;
      data::write_npy<float>((path_ / (std::to_string(i) + ".npy")).string(), numbers, {frames, 133, 3});
      index << i << ".npy\tthe weather of day " << i << "\ttrain\n";
    }
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

}  // namespace

void register_benchmarks() {
  constexpr Index batch = 8;
  Shared const folder([] { return Folder(); });
  Shared const poses([folder] {
    auto const files =
        std::make_shared<pose_to_text::PoseFolder const>(folder->path(), "utf-8", data::OnFailure::raise, 1, nullptr);
    std::vector<std::string> texts;
    for (auto const& entry : files->entries()) texts.push_back(entry.text);
    return pose_to_text::PoseDataset(files, interop::SentencePiece::train(texts, {.vocabulary = 60}), 64,
                                     pose_to_text::Reads::text);
  });
  std::string const name = "pose_files/batch:8";
  add_loader(name, poses, batch);
  for (std::string const kind : {"before", "after"})
    add_peer(name, kind, python_peer("pose_files.py", {}, "", [folder, kind] {
               return std::vector<std::string>{folder->path(), std::to_string(batch), kind};
             }));
}
