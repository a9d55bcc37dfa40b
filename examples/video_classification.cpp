// SPDX-License-Identifier: Apache-2.0
// Trains a 3D convolutional network to tell in which direction a bright spot moves. The clips are generated: bytes with
// noise, and one direction is twice as frequent as each of the others, which the weights of the loss make up for.
#include <array>
#include <cstdint>
#include <vector>

#include <lockstep/app/run.hpp>
#include <lockstep/lockstep.hpp>

#include "generated.hpp"
#include "video_classification/model.hpp"

using namespace lockstep;
using video_classification::Clip;

namespace {

struct Options : app::Options {
  video_classification::Sizes sizes{.class_weights = {0.5f, 1, 1, 1}};
  Index samples = 400;
  app::Precision precision = app::Precision::fp32;

  Options() { batch_size = 8; }
  void flags(app::Command& command) {
    command.add("--frames", sizes.frames, 2, 1024, "Frames of a clip");
    command.add("--height", sizes.height, 8, 4096, "Height of a frame in pixels");
    command.add("--width", sizes.width, 8, 4096, "Width of a frame in pixels");
    command.add("--sync-batch-norm", sizes.synchronized, "Normalise by the clips of all ranks and devices");
    command.add("--samples", samples, 1, 10000000, "Clips to generate for training; a tenth more for evaluation");
  }
};

class Camera {
 public:
  explicit Camera(Options const& options) : sizes_(options.sizes), seed_(options.seed) {}

  Clip operator()(std::uint64_t index) const {
    auto const number = mix(seed_, index);
    auto const frames = sizes_.frames, height = sizes_.height, width = sizes_.width;
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(frames * height * width)),
              std::array{0, 0, 1, 2, 3}[number % 5]};
    constexpr std::array<std::array<Index, 2>, 4> directions{{{0, 1}, {0, -1}, {1, 0}, {-1, 0}}};
    auto const [down, right] = directions[static_cast<std::size_t>(clip.label)];
    Index const radius = std::max<Index>(1, std::min(height, width) / 8);
    std::uint64_t noise = number | 1;
    auto* pixel = clip.pixels.data();
    for (Index f = 0; f < frames; ++f) {
      Index const way = 2 * f - frames + 1;  // from -frames to frames: the spot passes the middle half-way
      Index const y = height / 2 + down * way * height / (3 * frames),
                  x = width / 2 + right * way * width / (3 * frames);
      for (Index row = 0; row < height; ++row) {
        for (Index column = 0; column < width; ++column) {
          noise = noise * 6364136223846793005u + 1442695040888963407u;
          bool const inside = (row - y) * (row - y) + (column - x) * (column - x) <= radius * radius;
          *pixel++ = static_cast<std::uint8_t>((inside ? 160 : 32) + (noise >> 58));
        }
      }
    }
    return clip;
  }

 private:
  video_classification::Sizes sizes_;
  std::uint64_t seed_;
};

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  return generated::train(training, Camera{options}, data::PadCollate{},
                          video_classification::VideoClassifier{options.sizes}, train::Accuracy{&Clip::label});
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, generated::check<Options>, train_rank); }
