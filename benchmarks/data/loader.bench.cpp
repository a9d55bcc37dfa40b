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
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Settings of peers/loader.py that are tried, as lists with commas.
struct Rival {
  std::string peer, workers, collates;
};

/// `name` is a case of peers/loader.py.
template <class Dataset>
void add_case(std::string const& name, Index batch, Shared<Dataset> const& dataset,
              data::PadCollate const& collate = {}, std::vector<Rival> rivals = {},
              std::function<std::vector<std::string>()> const& file = {}) {
  auto const full = "loader/" + name + "/batch:" + std::to_string(batch);
  add_loader(full, dataset, batch, collate);
  rivals.insert(rivals.begin(), {"pytorch", "0,1,2", "default,written"});
  for (auto const& rival : rivals)
    add_peer(full, rival.peer,
             python_peer("loader.py", {name, std::to_string(batch), rival.workers, rival.collates}, "", file));
}

}  // namespace

void register_benchmarks() {
  data::PadCollate const with_mask{.mask = data::Mask::build};
  add_case(
      "tiny", 1024, Shared([] {
        return data::InMemoryDataset{samples<Tiny>(102'400, [](Index i) { return Tiny{static_cast<float>(i), 1}; })};
      }),
      {}, {{"pytorch_workers", "1,2", "default,written"}});
  add_case("tokens", 256,
           Shared([] { return data::InMemoryDataset{samples<Tokens>(4096, [](Index) { return Tokens{}; })}; }));
  add_case("trajectories", 256, Shared([] {
             return data::InMemoryDataset{samples<Trajectory>(3072, [](Index i) {
               return Trajectory{std::vector<std::array<float, 64>>(static_cast<std::size_t>(trajectory_length(i)))};
             })};
           }),
           with_mask, {{"before", "0", "before"}, {"after", "0", "after"}});
  add_case("pose", 32, Shared([] {
             return data::InMemoryDataset{samples<Pose>(512, [](Index i) {
               return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
             })};
           }),
           with_mask);
  Shared const file([] { return ClipsFile(160); });
  add_case("clips", 32, Shared([file] {
             return data::ArrayDataset{
                 data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file->path(), {17, 256, 256})}};
           }),
           {}, {}, [file] { return std::vector<std::string>{file->path()}; });
}
