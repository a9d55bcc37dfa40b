// SPDX-License-Identifier: Apache-2.0
// Trains an encoder-decoder to write down what a skeleton signs. The clips are generated: every word has a movement of
// its own, shown at an uneven pace and with some noise.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/lockstep.hpp>

#include "pose_to_text/model.hpp"

using namespace lockstep;
using pose_to_text::Clip;

namespace {

constexpr std::int32_t begin = 1, end = 2, first_word = 3;  // 0 pads

struct Options : app::Options {
  pose_to_text::Sizes sizes{.vocabulary = 100, .width = 128, .layers = 2, .heads = 4, .inner = 256};
  Index samples = 2000, longest = 6;
  app::Precision precision = app::Precision::fp32;

  void flags(app::Command& command) {
    command.add("--d-model", sizes.width, 1, 8192, "Width of the model");
    command.add("--num-layers", sizes.layers, 1, 128, "Layers of the encoder, and of the decoder");
    command.add("--num-heads", sizes.heads, 1, 128, "Attention heads of a layer");
    command.add("--feed-forward", sizes.inner, 1, 65536, "Width of a layer's feed-forward part");
    command.add("--dropout", sizes.dropout, 0, 0.9, "Share of activations that training drops");
    command.add("--vocabulary", sizes.vocabulary, 4, 100000, "Words, three of them not spoken: padding, begin, end");
    command.add("--samples", samples, 1, 10000000, "Clips to generate for training; a tenth more for evaluation");
    command.add("--max-length", longest, 1, 1000, "Words of the longest clip");
  }
};

/// The clip of a number: the same on every rank.
class Signer {
 public:
  Signer(Options const& options, Index first, Index count)
      : words_(options.sizes.vocabulary - first_word),
        longest_(options.longest),
        seed_(options.seed),
        first_(first),
        count_(count) {}

  [[nodiscard]] Index size() const { return count_; }
  [[nodiscard]] Clip get(Index i) const {
    Philox const random(mix(seed_, static_cast<std::uint64_t>(first_ + i)));
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
  Index first_, count_;
};

void check(Options const& options) {
  if (!options.data.empty()) throw ConfigError("--data " + options.data + ": this example generates its clips");
  if (options.sizes.width % options.sizes.heads != 0)
    throw ConfigError("--d-model " + std::to_string(options.sizes.width) + " with --num-heads " +
                      std::to_string(options.sizes.heads) + ": heads share the width equally; choose a multiple");
  app::check_samples(options, options.samples);
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const loader = [&](Signer const& clips, auto sampler) {
    return data::DataLoader{clips, sampler, data::RaggedCollate{}, training.loader_options()};
  };
  auto batches = loader({options, 0, options.samples}, data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader({options, options.samples, (options.samples + 9) / 10}, data::SequentialSampler{});
  training.fit(pose_to_text::PoseToText{options.sizes}, optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
