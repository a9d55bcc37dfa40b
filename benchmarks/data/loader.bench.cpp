// SPDX-License-Identifier: Apache-2.0
// Samples per second through the loader, each side with its fastest setting, against PyTorch's loader and against two
// users' own collates of trajectories.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/loading.hpp>
#include <data/samples.hpp>
#include <python_peer.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// A case with the names of peers/loader.py.
struct Case {
  std::string label, name;
  Index batch;
  data::PadCollate collate = {};
  std::vector<std::string> more = {};
};

struct Rival {
  std::string as, workers, collates;
};

template <class D>
void compare(Ratios& ratios, Case const& at, D const& dataset, std::vector<Rival> const& others = {}) {
  auto const workers = best_workers(at.name, dataset, at.batch, at.collate);
  auto rivals = others;
  rivals.insert(rivals.begin(), {"pytorch", "0,1,2", "default,written"});
  for (auto const& rival : rivals) {
    std::vector<std::string> arguments{at.name, std::to_string(at.batch), rival.workers, rival.collates};
    arguments.insert(arguments.end(), at.more.begin(), at.more.end());
    auto peer = python_peer("loader.py", arguments);
    if (!peer) return;
    Loading ours(dataset, at.batch, workers, at.collate);
    ratios.compare(at.label, rival.as, std::ref(ours), std::ref(*peer), {.seconds = 0.3, .count = 5});
    if (rival.as != "pytorch") continue;
    auto const per_processor = [](auto& side) { return [&side](double duration) { return side(-duration); }; };
    ratios.compare(at.label + ", processor time", rival.as, per_processor(ours), per_processor(*peer),
                   {.seconds = 0.3, .count = 3});
  }
}

}  // namespace

int main() {
  Ratios ratios("data/loader");
  data::PadCollate const with_mask{.mask = data::Mask::build};
  {
    data::InMemoryDataset const tiny{samples<Tiny>(102'400, [](Index i) { return Tiny{static_cast<float>(i), 1}; })};
    compare(ratios, {"tiny samples of 2 float32, batch 1024", "tiny", 1024}, tiny,
            {{"pytorch_workers", "1,2", "default,written"}});
  }
  {
    data::InMemoryDataset const tokens{samples<Tokens>(4096, [](Index) { return Tokens{}; })};
    compare(ratios, {"tokens uint16, length 1024, batch 256", "tokens", 256}, tokens);
  }
  {
    data::InMemoryDataset const trajectories{samples<Trajectory>(3072, [](Index i) {
      return Trajectory{std::vector<std::array<float, 64>>(static_cast<std::size_t>(trajectory_length(i)))};
    })};
    compare(ratios,
            {"trajectories 80 to 160 x 64 float32, batch 256, padded with mask", "trajectories", 256, with_mask},
            trajectories, {{"before", "0", "before"}, {"after", "0", "after"}});
  }
  {
    data::InMemoryDataset const poses{samples<Pose>(512, [](Index i) {
      return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
    })};
    compare(ratios, {"pose 30 to 600 x 133 x 3 float32, batch 32, padded with mask", "pose", 32, with_mask}, poses);
  }
  {
    ClipsFile const file(160);
    data::ArrayDataset const clips{
        data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file.path(), {17, 256, 256})}};
    compare(ratios, {"clips 17x256x256 uint8, batch 32, records of one file", "clips", 32, {}, {file.path()}}, clips);
  }
}
