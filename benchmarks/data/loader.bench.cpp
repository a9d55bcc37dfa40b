// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/samples.hpp>
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Samples per second through a loader that never ends.
template <class D>
class Loading {
 public:
  Loading(D const& dataset, Index batch, int workers, data::PadCollate collate = {})
      : loader_(dataset, data::ShuffledSampler{.seed = 1}, collate,
                {.batch_size = batch, .workers = workers, .prefetch = 2, .tail = data::Tail::drop}) {
    loader_.start({}, 0, 0, Index{1} << 40);
  }
  double operator()(double seconds) {
    Index seen = 0;
    auto const start = lockstep_bench::seconds(Time::wall);
    double elapsed = 0;
    while (elapsed < seconds) {
      seen += loader_.next().batches()[0].rows();
      elapsed = lockstep_bench::seconds(Time::wall) - start;
    }
    return static_cast<double>(seen) / elapsed;
  }

 private:
  data::DataLoader<D, data::ShuffledSampler, data::PadCollate> loader_;
};

using Arguments = std::vector<std::string>;

/// The fastest of PyTorch's settings, found by a short try of each.
std::optional<std::pair<Peer, std::string>> best_peer(std::string const& name, Index batch, std::vector<int> workers,
                                                      Arguments const& collates, Arguments const& more) {
  std::string best;
  Arguments best_arguments;
  double most = 0;
  for (auto const count : workers) {
    for (auto const& collate : collates) {
      Arguments arguments{name, std::to_string(batch), std::to_string(count), collate};
      arguments.insert(arguments.end(), more.begin(), more.end());
      auto peer = python_peer("loader.py", arguments);
      if (!peer) return std::nullopt;
      (*peer)(0.3);
      auto const rate = (*peer)(0.5);
      std::printf("  %s, PyTorch with %d workers, collate %s: %.0f samples/s\n", name.c_str(), count, collate.c_str(),
                  rate);
      if (rate <= most) continue;
      most = rate;
      best_arguments = arguments;
      best = std::to_string(count) + " workers, collate " + collate;
    }
  }
  return std::pair{std::move(*python_peer("loader.py", best_arguments)), best};
}

/// Ours with as many workers as is best for us, against PyTorch's best.
template <class D>
void compare(Ratios& ratios, std::string const& label, std::string const& name, D const& dataset, Index batch,
             data::PadCollate const& collate, Arguments const& more = {}) {
  int best = 0;
  double most = 0;
  for (int workers : {0, 1, 2}) {
    Loading ours(dataset, batch, workers, collate);
    ours(0.2);
    auto const rate = ours(0.5);
    std::printf("  %s, ours with %d workers: %.0f samples/s\n", name.c_str(), workers, rate);
    if (rate > most) most = rate, best = workers;
  }
  auto const against = [&](std::string const& as, std::vector<int> workers, Arguments const& collates) {
    auto peer = best_peer(name, batch, std::move(workers), collates, more);
    if (!peer) return;
    Loading ours(dataset, batch, best, collate);
    ratios.compare(label, as, std::ref(ours), std::ref(peer->first), {.seconds = 0.4, .count = 5});
  };
  against("pytorch", {0, 1, 2}, {"default", "written"});
  if (name == "tiny") against("pytorch_workers", {1, 2}, {"default", "written"});
  if (name == "trajectories") {
    against("before", {0}, {"before"});
    against("after", {0}, {"after"});
  }
}

}  // namespace

int main() {
  Ratios ratios("data/loader");
  {
    data::InMemoryDataset const tiny{samples<Tiny>(102'400, [](Index i) { return Tiny{static_cast<float>(i), 1}; })};
    compare(ratios, "tiny samples of 2 float32, batch 1024", "tiny", tiny, 1024, {});
  }
  {
    data::InMemoryDataset const tokens{samples<Tokens>(4096, [](Index) { return Tokens{}; })};
    compare(ratios, "tokens uint16, length 1024, batch 256", "tokens", tokens, 256, {});
  }
  {
    data::InMemoryDataset const trajectories{samples<Trajectory>(3072, [](Index i) {
      return Trajectory{std::vector<std::array<float, 64>>(static_cast<std::size_t>(trajectory_length(i)))};
    })};
    compare(ratios, "trajectories 80 to 160 x 64 float32, batch 256, padded with mask", "trajectories", trajectories,
            256, {.mask = data::Mask::build});
  }
  {
    data::InMemoryDataset const poses{samples<Pose>(512, [](Index i) {
      return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
    })};
    compare(ratios, "pose 30 to 600 x 133 x 3 float32, batch 32, padded with mask", "pose", poses, 32,
            {.mask = data::Mask::build});
  }
  {
    ClipsFile const file(160);
    data::ArrayDataset const clips{
        data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file.path(), {17, 256, 256})}};
    compare(ratios, "clips 17x256x256 uint8, batch 32, records of one file", "clips", clips, 32, {}, {file.path()});
  }
}
