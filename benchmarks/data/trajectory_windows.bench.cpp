// SPDX-License-Identifier: Apache-2.0
// Windows of recorded episodes through the loader, from files, in the batch sizes of the trajectory transformer's story
// and with its four workers, against two users' own collates in PyTorch's loader, on the same files.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/data/collate/ragged_collate.hpp>

#include "../examples/trajectory_transformer/data.hpp"
#include "../examples/trajectory_transformer/synthetic.hpp"
#include <data/loading.hpp>
#include <python_peer.hpp>
#include <sized.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;
using namespace trajectory_transformer;

namespace {

/// A temporary folder of 2,000 episodes of 200 steps.
class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a folder " + path_);
    Synthetic const recipe{.episodes = sized(2000, 250), .steps = 200, .actions = 18, .seed = 1};
    recipe(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;

  [[nodiscard]] std::string const& path() const noexcept { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string();
};

}  // namespace

void register_benchmarks() {
  constexpr int workers = 4;
  Shared const folder([] { return Folder(); });
  Shared const windows([folder] {
    trajectory_transformer::Sizes const sizes{.steps = 20, .context = 20};
    auto const files = std::make_shared<Episodes const>(folder->path(), BadEpisodes::refuse);
    return Windows(files, sizes, Scaling::of(*files, 1 << 23, 0, BadEpisodes::refuse), Windows::Begin::drawn);
  });
  for (Index const batch : {512, 1024}) {
    auto const name = "trajectory_windows/steps:20+20" + parts({{"batch", batch}, {"workers", workers}});
    add_loader(name, windows, batch, data::RaggedCollate{.segment_plans = data::SegmentPlans::build}, workers);
    for (std::string const collate : {"before", "after"})
      add_peer(name, collate, python_peer("trajectory_windows.py", {}, "", [=] {
                 return std::vector<std::string>{
                     folder->path(), std::to_string(batch), std::to_string(workers), collate, "20", "20"};
               }));
  }
}
