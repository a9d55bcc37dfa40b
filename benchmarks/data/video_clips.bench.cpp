// SPDX-License-Identifier: Apache-2.0
// Clips per second that the video classifier's reader delivers from .npy files of 17 x 256 x 256 bytes, against
// PyTorch's loader on the same files: with a team's own collate, which makes floats of each clip, and with one that
// keeps bytes.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <lockstep/data/source/write_npy.hpp>

#include "../examples/video_classification/clips.hpp"
#include <data/loading.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;
namespace fs = std::filesystem;

namespace {

/// A temporary folder of 96 clips, in `files` files.
class ClipsFolder {
 public:
  explicit ClipsFolder(Index files) {
    char const* const folder = std::getenv("LOCKSTEP_BENCH_FOLDER");
    path_ = (folder ? fs::path(folder) : fs::temp_directory_path()) / ("lockstep-video-clips-" + std::to_string(files));
    fs::remove_all(path_);
    fs::create_directories(path_);
    Index const each = count / files;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(each * 17 * 256 * 256));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>((i * 2654435761u) >> 24);
    std::ofstream index(path_ / "index.csv");
    index << "file,first_frame,frames,label,video\n";
    for (Index f = 0; f < files; ++f) {
      auto const name = std::to_string(f) + ".npy";
      data::write_npy<std::uint8_t>((path_ / name).string(), pixels, {each * 17, 256, 256});
      for (Index k = 0; k < each; ++k) index << name << "," << 17 * k << ",17," << (f + k) % 2 << "," << f << "\n";
    }
  }
  ~ClipsFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ClipsFolder(ClipsFolder const&) = delete;
  ClipsFolder& operator=(ClipsFolder const&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  static constexpr Index count = 96;
  fs::path path_;
};

}  // namespace

void register_benchmarks() {
  constexpr Index batch = 8;
  for (Index const files : {Index{96}, Index{12}}) {
    Shared const folder([files] { return ClipsFolder(files); });
    Shared const clips([folder] { return video_classification::Clips(folder->path()); });
    auto const name = "video_clips/batch:8/files:" + std::to_string(files);
    add_loader(name, clips, batch);
    for (std::string const kind : {"before", "after"})
      add_peer(name, kind, python_peer("video_clips.py", {}, "", [folder, kind] {
                 return std::vector<std::string>{folder->path(), std::to_string(batch), kind};
               }));
  }
}
