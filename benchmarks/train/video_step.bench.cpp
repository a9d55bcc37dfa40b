// SPDX-License-Identifier: Apache-2.0
// Training steps of the video classifier of the examples against PyTorch's eager mode in the memory format that suits
// it best, channels last: same model, clips and optimizer, both on one thread.
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

#include "../examples/video_classification/model.hpp"
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;
using video_classification::Clip;
using video_classification::VideoClassifier;

namespace {
constexpr Index batch_size = 4;

auto clips() {
  video_classification::Sizes const sizes;
  std::vector<Clip> all;
  for (int i = 0; i < batch_size; ++i) {
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(sizes.frames * sizes.height * sizes.width)), i % 4};
    for (std::size_t p = 0; p < clip.pixels.size(); ++p)
      clip.pixels[p] = static_cast<std::uint8_t>((p * 2654435761u) >> 16);
    all.push_back(std::move(clip));
  }
  return data::DataLoader{data::InMemoryDataset{std::move(all)},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = batch_size, .workers = 0}};
}
}  // namespace

int main() {
  Ratios ratios("train/video_step");
  auto peer = python_peer("video_classification.py", {"--batch", std::to_string(batch_size)});
  if (!peer) return 0;
  VideoClassifier model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 1, values.data());
  parallel::SingleDevice policy{.threads = 1};
  parallel::SingleDevice::Session<VideoClassifier, optim::AdamW> session(policy, model, layout, values);
  auto loader = clips();
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  Index steps = 0;
  auto const step = [&] {
    session.micro_step(held.batches(), {.key = 1});
    session.update(optim::AdamW{.learning_rate = 3e-4}, {.step = ++steps, .learning_rate = 3e-4});
  };
  ratios.compare("step 3d cnn, 17x256x256, 1 thread", "pytorch",
                 [&](double duration) { return batch_size * rate(duration, Time::processor, step); }, std::ref(*peer),
                 {.seconds = 3, .count = 9});
}
