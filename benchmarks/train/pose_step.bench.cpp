// SPDX-License-Identifier: Apache-2.0
// Training steps of the pose-to-text model of the examples against PyTorch's eager mode: same model, shapes, dropout
// and optimizer, both on one thread, all rows full.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/single_device.hpp>

#include "../examples/pose_to_text/model.hpp"
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;
using pose_to_text::Clip;
using pose_to_text::PoseToText;

namespace {
constexpr Index batch_size = 16, frames = 128, tokens = 32;

auto clips(pose_to_text::Sizes const& sizes) {
  std::vector<Clip> all;
  for (Index i = 0; i < batch_size; ++i) {
    Clip clip;
    for (Index f = 0; f < frames; ++f) {
      clip.frames.emplace_back();
      for (std::size_t c = 0; c < pose_to_text::coordinates; ++c)
        clip.frames.back()[c] = static_cast<float>((static_cast<std::size_t>(i + 7 * f) + 31 * c) % 101) / 50 - 1;
    }
    for (Index t = 0; t < tokens; ++t) {
      clip.tokens.push_back(static_cast<std::int32_t>((i * 977 + t * 31) % sizes.vocabulary));
      clip.next.push_back(static_cast<std::int32_t>((i * 977 + (t + 1) * 31) % sizes.vocabulary));
    }
    all.push_back(std::move(clip));
  }
  return data::DataLoader{data::InMemoryDataset{std::move(all)},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = batch_size, .workers = 0}};
}

void compare(Ratios& ratios, std::string const& name, pose_to_text::Sizes const& sizes) {
  auto peer = python_peer("pose_to_text.py", {"--dropout", std::to_string(sizes.dropout)});
  if (!peer) return;
  PoseToText model(sizes);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 1, values.data());
  parallel::SingleDevice policy{.threads = 1};
  parallel::SingleDevice::Session<PoseToText, optim::AdamW> session(policy, model, layout, values);
  auto loader = clips(sizes);
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  Index steps = 0;
  auto const step = [&] {
    ++steps;
    session.micro_step(held.batches(), {.key = static_cast<std::uint64_t>(steps)});
    session.update(optim::AdamW{.learning_rate = 3e-4}, {.step = steps, .learning_rate = 3e-4});
  };
  ratios.compare(name, "pytorch", [&](double duration) { return batch_size * rate(duration, Time::processor, step); },
                 std::ref(*peer), {.seconds = 3, .count = 9});
}
}  // namespace

int main() {
  Ratios ratios("train/pose_step");
  compare(ratios, "step t5, d=256, 4+4 layers, 1 thread", {});
  compare(ratios, "step t5, d=256, 4+4 layers, no dropout, 1 thread", {.dropout = 0});
}
