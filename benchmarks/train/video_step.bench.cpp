// SPDX-License-Identifier: Apache-2.0
// Training steps of the video classifier of the examples against PyTorch's eager mode in its best memory format,
// channels last: equal model, clips and optimizer, both on one thread.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>

#include "../examples/video_classification/model.hpp"
#include <sized.hpp>
#include <train/add_step.hpp>

using namespace lockstep_bench;
using video_classification::Clip;

namespace {
video_classification::Sizes const sizes{.height = sized(256, 64), .width = sized(256, 64)};

auto clips(Index batch_size) {
  std::vector<Clip> all;
  for (Index i = 0; i < batch_size; ++i) {
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(sizes.frames * sizes.height * sizes.width)),
              static_cast<int>(i % 4)};
    for (std::size_t p = 0; p < clip.pixels.size(); ++p)
      clip.pixels[p] = static_cast<std::uint8_t>((p * 2654435761u) >> 16);
    all.push_back(std::move(clip));
  }
  return one_batch(std::move(all), data::PadCollate{});
}
}  // namespace

void register_benchmarks() {
  auto const add_batch = [](std::string const& name, Index batch_size) {
    add_step(
        name, [] { return video_classification::VideoClassifier(sizes); }, [=] { return clips(batch_size); });
    add_step_peer(name, "video_classification.py", {"--batch", std::to_string(batch_size)});
  };
  add_batch("video_step/17x256x256", 4);
  add_batch("video_step/17x256x256/batch:1", 1);
}
