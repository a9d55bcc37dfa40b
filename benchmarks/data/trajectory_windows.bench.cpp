// SPDX-License-Identifier: Apache-2.0
// Windows of recorded episodes through the loader, from files, in the batch sizes of the trajectory transformer's story
// and with its four workers, against two users' own collates in PyTorch's loader, on the same files.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <lockstep/data/collate/ragged_collate.hpp>

#include "../examples/trajectory_transformer/data.hpp"
#include "../examples/trajectory_transformer/synthetic.hpp"
#include <data/loading.hpp>
#include <python_peer.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;
using namespace trajectory_transformer;

int main() {
  Ratios ratios("data/trajectory_windows");
  auto name = (std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return 1;
  Synthetic const recipe{.episodes = 2000, .steps = 200, .actions = 18, .seed = 1};
  recipe(name);
  {
    constexpr int workers = 4;
    Sizes const sizes{.steps = 20, .context = 20};
    auto const files = std::make_shared<Episodes const>(name, BadEpisodes::refuse);
    Windows const windows(files, sizes, Scaling::of(*files, 1 << 23, 0, BadEpisodes::refuse), Windows::Begin::drawn);
    for (Index const batch : {512, 1024})
      for (std::string const collate : {"before", "after"}) {
        auto peer = python_peer("trajectory_windows.py",
                                {name, std::to_string(batch), std::to_string(workers), collate, "20", "20"});
        if (!peer) break;
        Loading ours(windows, batch, workers, data::RaggedCollate{.segment_plans = data::SegmentPlans::build});
        ratios.compare(
            "windows of up to 20 + 20 steps x 17 float32 from files, batch " + std::to_string(batch) + ", 4 workers",
            collate, std::ref(ours), std::ref(*peer), {.seconds = 1.5, .count = 5});
      }
  }
  std::filesystem::remove_all(name);
}
