// SPDX-License-Identifier: Apache-2.0
// Trains an encoder-decoder to write down what a skeleton signs. The clips are generated: every word has a movement of
// its own, shown at an uneven pace and with some noise.
#include <cmath>
#include <cstdint>
#include <string>

#include <lockstep/app/run.hpp>
#include <lockstep/lockstep.hpp>

#include "generated.hpp"
#include "pose_to_text/model.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using pose_to_text::Clip;

namespace {

constexpr std::int32_t begin = 1, end = 2, first_word = 3;  // 0 pads

struct Options : app::Options {
  pose_to_text::Sizes sizes{.vocabulary = 100, .width = 128, .layers = 2, .heads = 4, .feed_forward = 256};
  Index samples = 2000, longest = 6;
  app::Precision precision = app::Precision::fp32;

  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--vocabulary", sizes.vocabulary, 4, 100000, "Words, three of them not spoken: padding, begin, end");
    command.add("--samples", samples, 1, 10000000, "Clips to generate for training; a tenth more for evaluation");
    command.add("--max-length", longest, 1, 1000, "Words of the longest clip");
  }
};

class Signer {
 public:
  explicit Signer(Options const& options)
      : words_(options.sizes.vocabulary - first_word), longest_(options.longest), seed_(options.seed) {}

  Clip operator()(std::uint64_t number) const {
    Philox const random(mix(seed_, number));
    std::uint64_t draws = 0;
    auto const below = [&](Index n) {
      return static_cast<Index>(uniform(random(0, ++draws)[0]) * static_cast<float>(n));
    };
    Clip clip{{}, {begin}, {}};
    for (Index w = 1 + below(longest_); w > 0; --w) {
      auto const word = below(words_);
      sign(clip, word, 3 + below(4), random, draws);
      clip.tokens.push_back(first_word + static_cast<std::int32_t>(word));
      clip.next.push_back(clip.tokens.back());
    }
    clip.next.push_back(end);
    return clip;
  }

 private:
  /// Key points swing about their places; direction and phase are the word's.
  static void sign(Clip& clip, Index word, Index frames, Philox const& random, std::uint64_t& draws) {
    Philox const of_word(mix(std::uint64_t{77}, static_cast<std::uint64_t>(word)));
    for (Index f = 0; f < frames; ++f) {
      auto& frame = clip.frames.emplace_back();
      auto const time = static_cast<float>(f) / static_cast<float>(frames);
      ++draws;
      for (std::size_t c = 0; c < frame.size(); ++c) {
        auto const own = of_word(0, c);
        float const noise = uniform(random(draws, c)[0]) - 0.5f;
        frame[c] = (2 * uniform(own[0]) - 1) * std::sin(6.28f * (time + uniform(own[1]))) + 0.2f * noise;
      }
    }
  }

  Index words_, longest_;
  std::uint64_t seed_;
};

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  generated::check(options);
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  return generated::train(training, Signer{options}, data::RaggedCollate{}, pose_to_text::PoseToText{options.sizes},
                          train::Accuracy{&Clip::next});
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
