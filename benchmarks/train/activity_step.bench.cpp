// SPDX-License-Identifier: Apache-2.0
// Training steps of the activity classifier's three networks against PyTorch's eager mode: equal networks, batch and
// optimizer, both on one thread.
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>

#include "../examples/activity_classification/data.hpp"
#include "../examples/activity_classification/model.hpp"
#include <train/add_step.hpp>

using namespace lockstep_bench;
using activity_classification::ActivityClassifier, activity_classification::Mode;

namespace {
auto batch() {
  activity_classification::SyntheticMotion const motion(1);
  std::vector<lockstep::data::HarSample> windows;
  for (std::uint64_t i = 0; i < 32; ++i) windows.push_back(motion(i));
  return one_batch(std::move(windows), data::PadCollate{});
}
}  // namespace

void register_benchmarks() {
  for (auto const& [mode, name] : {std::pair{Mode::flatten, "flatten"}, std::pair{Mode::conv, "conv"},
                                   std::pair{Mode::transformer, "transformer"}}) {
    auto const full = std::string("activity_step/mode:") + name + "/windows:32";
    add_step(
        full, [mode = mode] { return ActivityClassifier({.mode = mode}); }, batch);
    add_step_peer(full, "activity_classification.py", {"--mode", name});
  }
}
