// SPDX-License-Identifier: Apache-2.0
// The loader against torch::data, PyTorch's C++ loader, which is compiled here against the libraries of the peers'
// Python.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/loading.hpp>
#include <data/samples.hpp>
#include <peer.hpp>
#include <suite.hpp>
#include <torch_package.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// The program peers/torch_data.cpp, compiled once into a folder next to this one; empty without PyTorch.
std::string program() {
  auto const package = torch_package();
  if (package.empty()) return {};
  auto const source = std::string(LOCKSTEP_BENCHMARKS "/peers/torch_data.cpp");
  auto const built = (std::filesystem::canonical("/proc/self/exe").parent_path() / "peer.torch_data").string();
  namespace fs = std::filesystem;
  if (fs::exists(built) && fs::last_write_time(built) > fs::last_write_time(source)) return built;
  auto const libraries = package + "/lib";
  auto const command =
      std::string(LOCKSTEP_COMPILER) + " -std=c++20 -O3 -DNDEBUG -w -pthread -I'" LOCKSTEP_BENCHMARKS "' -I'" +
      package + "/include' -I'" + package + "/include/torch/csrc/api/include' '" + source + "' -o '" + built + "' -L'" +
      libraries + "' '-Wl,--no-as-needed,-rpath," + libraries + "' -ltorch_cpu -ltorch -lc10";
  return std::system(command.c_str()) == 0 ? built : std::string();
}

/// The command of torch::data with its fastest number of workers; empty without PyTorch.
std::vector<std::string> fastest(std::string const& name, Index batch, std::string const& collate,
                                 std::string const& path) {
  std::vector<std::string> best;
  double least = 0;
  for (int const workers : {0, 1, 2}) {
    std::vector<std::string> const command{program(), name, std::to_string(batch), std::to_string(workers),
                                           collate,   path};
    auto const peer = command[0].empty() ? nullptr : Peer::start(command);
    if (!peer) return {};
    double seconds = 0;
    for (int i = 0; i < 2; ++i) {  // the first is a warm-up
      peer->send(20);
      seconds = std::stod(peer->answer());
    }
    if (!best.empty() && seconds >= least) continue;
    least = seconds;
    best = command;
  }
  return best;
}

template <class Dataset>
void add_case(
    std::string const& name, Shared<Dataset> const& dataset, Index batch, std::vector<std::string> const& collates,
    data::PadCollate const& collate, std::function<std::string()> const& path = [] { return "-"; }) {
  auto const full = "torch_data/" + name + "/batch:" + std::to_string(batch);
  add_loader(full, dataset, batch, collate);
  for (auto const& theirs : collates) {
    Shared const command([=] { return fastest(name, batch, theirs, path()); });
    add_peer(full, "torch_data_" + theirs,
             {.words = [command] { return *command; },
              .reason = "no torch/data.h; LOCKSTEP_PEER_PYTHON may name a Python with torch"});
  }
}

}  // namespace

void register_benchmarks() {
  add_case(
      "tiny", Shared([] {
        return data::InMemoryDataset{samples<Tiny>(102'400, [](Index i) { return Tiny{static_cast<float>(i), 1}; })};
      }),
      1024, {"stack", "written"}, {});
  add_case("pose", Shared([] {
             return data::InMemoryDataset{samples<Pose>(512, [](Index i) {
               return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
             })};
           }),
           32, {"written"}, {.mask = data::Mask::build});
  Shared const file([] { return ClipsFile(160); });
  add_case("clips", Shared([file] {
             return data::ArrayDataset{
                 data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file->path(), {17, 256, 256})}};
           }),
           32, {"stack"}, {}, [file] { return file->path(); });
}
