// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/source/write_npy.hpp>

#include "model.hpp"

/// Synthetic data set in the format of real ones. A sentence has up to 5 places, each with one of 8 signs or none. A
/// sign is its own movement of 27 joints, shown at an uneven pace, with noise and missing joints.
/// A sign has two words, of which a text has the first with probability 0.85. No model can predict which, so the
/// accuracy of pieces cannot exceed 1 - (second words) / (pieces and ends).
namespace pose_to_text::synthetic {

constexpr Index places = 5, signs_per_place = 8, signs = places * signs_per_place, joints = 27;
constexpr float first_word = 0.85f;

struct Recipe {
  Index training, evaluation;
  Index places;  ///< largest number of signs in a sentence, 1 to 5
  std::uint64_t seed;

  [[nodiscard]] std::string text() const {
    return std::to_string(training) + " + " + std::to_string(evaluation) + " sentences of up to " +
           std::to_string(places) + " signs, seed " + std::to_string(seed);
  }
};

/// Returns a pronounceable word, unique for each number below 140.
inline std::string word(Index number) {
  constexpr char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
  auto const syllable = [&](Index of) { return std::string{consonants[of % 14], vowels[of / 14 % 5]}; };
  return syllable(number) + syllable(number * 29 + number / 70 * 31 + 17) + "nrst"[number % 4];
}

/// Draws one sentence.
class Sentence {
 public:
  Sentence(Recipe const& recipe, std::uint64_t number) : random_(lockstep::mix(recipe.seed, number)) {
    auto const certain = below(recipe.places);  // no sentence is empty
    for (Index place = 0; place < recipe.places; ++place) {
      if (draw() > 0.6f && place != certain) continue;
      auto const sign = place * signs_per_place + below(signs_per_place);
      text += (text.empty() ? "" : " ") + word(sign + (draw() < first_word ? 0 : signs));
      show(sign, 3 + below(4));
    }
  }
  [[nodiscard]] Index frames() const { return std::ssize(numbers) / (joints * channels); }

  std::string text;
  std::vector<float> numbers;

 private:
  float draw() { return lockstep::uniform(random_(0, ++draws_)[0]); }
  Index below(Index n) { return static_cast<Index>(draw() * static_cast<float>(n)); }
  /// Adds the frames of a sign. Joints oscillate; direction and phase depend on the sign.
  void show(Index sign, Index count) {
    lockstep::Philox const of_sign(lockstep::mix(std::uint64_t{77}, static_cast<std::uint64_t>(sign)));
    for (Index f = 0; f < count; ++f) {
      auto const time = static_cast<float>(f) / static_cast<float>(count);
      for (Index joint = 0; joint < joints; ++joint) {
        bool const missing = draw() < 0.02f;
        for (Index axis = 0; axis < 2; ++axis) {
          auto const own = of_sign(0, static_cast<std::uint64_t>(joint * 2 + axis));
          float const swing =
              (2 * lockstep::uniform(own[0]) - 1) * std::sin(6.28f * (time + lockstep::uniform(own[1])));
          numbers.push_back(missing ? 0 : swing + 0.2f * (draw() - 0.5f));
        }
        numbers.push_back(missing ? 0 : 0.5f + 0.5f * draw());
      }
    }
  }

  lockstep::Philox random_;
  std::uint64_t draws_ = 0;
};

/// Writes the data set into an empty folder.
inline void write(std::filesystem::path const& folder, Recipe const& recipe) {
  std::string index = "file\ttext\tsplit\n";
  std::filesystem::create_directory(folder / "poses");
  for (Index i = 0; i < recipe.training + recipe.evaluation; ++i) {
    Sentence const sentence(recipe, static_cast<std::uint64_t>(i));
    auto const digits = std::to_string(i);
    auto const file = "poses/" + std::string(6 - std::min<std::size_t>(6, digits.size()), '0') + digits + ".npy";
    lockstep::data::write_npy<float>((folder / file).string(), sentence.numbers, {sentence.frames(), joints, channels});
    index += file + "\t" + sentence.text + "\t" + (i < recipe.training ? "train" : "dev") + "\n";
  }
  if (!(std::ofstream(folder / "index.tsv", std::ios::binary) << index).flush())
    throw lockstep::ConfigError((folder / "index.tsv").string() + ": cannot be written");
}

}  // namespace pose_to_text::synthetic
