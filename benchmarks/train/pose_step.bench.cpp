// SPDX-License-Identifier: Apache-2.0
// Training steps of the pose-to-text model of the examples against PyTorch's eager mode: equal model, shapes, dropout
// and optimizer, both on one thread, all rows full.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>

#include "../examples/pose_to_text/model.hpp"
#include <sized.hpp>
#include <train/add_step.hpp>

using namespace lockstep_bench;
using pose_to_text::Clip;

namespace {
constexpr Index frames = sized(128, 16), tokens = sized(32, 8), layers = sized(4, 1), vocabulary = sized(8000, 500);

auto clips(pose_to_text::Sizes const& sizes, Index batch_size) {
  std::vector<Clip> all;
  for (Index i = 0; i < batch_size; ++i) {
    Clip clip;
    for (Index f = 0; f < frames; ++f) {
      clip.frames.push_back(1);
      for (Index c = 0; c < sizes.coordinates; ++c)
        clip.numbers.push_back(static_cast<float>((i + 7 * f + 31 * c) % 101) / 50 - 1);
    }
    for (Index t = 0; t < tokens; ++t) {
      clip.tokens.push_back(static_cast<std::int32_t>((i * 977 + t * 31) % sizes.vocabulary));
      clip.next.push_back(static_cast<std::int32_t>((i * 977 + (t + 1) * 31) % sizes.vocabulary));
    }
    all.push_back(std::move(clip));
  }
  return one_batch(std::move(all), data::PadCollate{});
}
}  // namespace

void register_benchmarks() {
  auto const add_batch = [](std::string const& name, double dropout, Index batch_size) {
    pose_to_text::Sizes const sizes{.vocabulary = vocabulary, .layers = layers, .dropout = dropout};
    add_step(
        name, [sizes] { return pose_to_text::PoseToText(sizes); }, [=] { return clips(sizes, batch_size); });
    add_step_peer(name, "pose_to_text.py",
                  {"--dropout", std::to_string(dropout), "--batch", std::to_string(batch_size)});
  };
  add_batch("pose_step/width:256/layers:4+4", 0.1, 16);
  add_batch("pose_step/width:256/layers:4+4/no_dropout", 0, 16);
  add_batch("pose_step/width:256/layers:4+4/batch:1", 0.1, 1);
}
