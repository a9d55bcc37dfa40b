// SPDX-License-Identifier: Apache-2.0
// Training steps of the pose-to-text model of the examples against PyTorch's eager mode: equal model, shapes, dropout
// and optimizer, both on one thread, all rows full.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>

#include "../examples/pose_to_text/model.hpp"
#include <train/add_step.hpp>

using namespace lockstep_bench;
using pose_to_text::Clip;

namespace {
constexpr Index batch_size = 16, frames = 128, tokens = 32;

auto clips(pose_to_text::Sizes const& sizes) {
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
  for (double const dropout : {0.1, 0.0}) {
    pose_to_text::Sizes const sizes{.dropout = dropout};
    auto const name = std::string("pose_step/width:256/layers:4+4") + (dropout > 0 ? "" : "/no_dropout");
    add_step(
        name, [sizes] { return pose_to_text::PoseToText(sizes); }, [sizes] { return clips(sizes); });
    add_step_peer(name, "pose_to_text.py", {"--dropout", std::to_string(dropout)});
  }
}
