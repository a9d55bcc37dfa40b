// SPDX-License-Identifier: Apache-2.0
// The loader against torch::data, PyTorch's C++ loader, which is compiled here against the libraries of the peers'
// Python.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/loading.hpp>
#include <data/samples.hpp>
#include <peer.hpp>
#include <ratios.hpp>
#include <torch_package.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// The program peers/torch_data.cpp, compiled once into a folder next to this one; empty without PyTorch.
std::string program() {
  auto const package = torch_package();
  if (package.empty()) return {};
  auto const source = std::string(LOCKSTEP_SOURCE_DIR "/benchmarks/peers/torch_data.cpp");
  auto const built = (std::filesystem::canonical("/proc/self/exe").parent_path() / "peer.torch_data").string();
  namespace fs = std::filesystem;
  if (fs::exists(built) && fs::last_write_time(built) > fs::last_write_time(source)) return built;
  auto const libraries = package + "/lib";
  auto const command = std::string(LOCKSTEP_COMPILER) +
                       " -std=c++20 -O3 -DNDEBUG -w -pthread -I" LOCKSTEP_SOURCE_DIR "/benchmarks -I" + package +
                       "/include -I" + package + "/include/torch/csrc/api/include " + source + " -o " + built + " -L" +
                       libraries + " -Wl,--no-as-needed,-rpath," + libraries + " -ltorch_cpu -ltorch -lc10";
  return std::system(command.c_str()) == 0 ? built : std::string();
}

/// torch::data with its fastest number of workers.
std::unique_ptr<Peer> fastest(std::string const& program, std::string const& name, Index batch,
                              std::string const& collate, std::string const& path) {
  std::unique_ptr<Peer> best;
  double most = 0;
  for (int workers : {0, 1, 2}) {
    auto peer = Peer::start({program, name, std::to_string(batch), std::to_string(workers), collate, path});
    if (!peer) return nullptr;
    (*peer)(0.3);
    auto const rate = (*peer)(0.3);
    std::printf("  %s: torch::data with %d workers, collate %s: %.0f samples/s\n", name.c_str(), workers,
                collate.c_str(), rate);
    if (rate <= most) continue;
    most = rate;
    best = std::make_unique<Peer>(std::move(*peer));
  }
  return best;
}

template <class D>
void compare(Ratios& ratios, std::string const& program, std::string const& label, std::string const& name,
             D const& dataset, Index batch, std::vector<std::string> const& collates, data::PadCollate const& collate,
             std::string const& path = "-") {
  auto const workers = best_workers(name, dataset, batch, collate);
  for (auto const& theirs : collates) {
    auto peer = fastest(program, name, batch, theirs, path);
    if (!peer) continue;
    Loading ours(dataset, batch, workers, collate);
    ratios.compare(label, "torch::data, " + theirs, std::ref(ours), std::ref(*peer), {.seconds = 0.3, .count = 5});
  }
}

}  // namespace

int main() {
  auto const peer = program();
  if (peer.empty()) {
    std::puts("skipped: torch_data: no torch/data.h; LOCKSTEP_PEER_PYTHON may name a Python with torch");
    return 0;
  }
  Ratios ratios("data/torch_data");
  {
    data::InMemoryDataset const tiny{samples<Tiny>(102'400, [](Index i) { return Tiny{static_cast<float>(i), 1}; })};
    compare(ratios, peer, "tiny samples of 2 float32, batch 1024", "tiny", tiny, 1024, {"stack", "written"}, {});
  }
  {
    data::InMemoryDataset const poses{samples<Pose>(512, [](Index i) {
      return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
    })};
    compare(ratios, peer, "pose 30 to 600 x 133 x 3 float32, batch 32, padded with mask", "pose", poses, 32,
            {"written"}, {.mask = data::Mask::build});
  }
  {
    ClipsFile const file(160);
    data::ArrayDataset const clips{
        data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file.path(), {17, 256, 256})}};
    compare(ratios, peer, "clips 17x256x256 uint8, batch 32, records of one file", "clips", clips, 32, {"stack"}, {},
            file.path());
  }
}
