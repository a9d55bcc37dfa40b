// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/source/write_npy.hpp>

#include "clips.hpp"

/// Synthetic videos of an animal: a disc on a noisy background that rests, walks left or right, rears up or down, or
/// circles. Directions, places, sizes and brightness vary, so that no single pixel determines a class. Every twentieth
/// clip has the label of another class: a model that recognizes every motion has an accuracy of 0.95 in each part.
namespace video_classification::synthetic {
using lockstep::Philox, lockstep::uniform, lockstep::mix;

struct Recipe {
  ClipSize size;
  Index training = 0, evaluation = 0;  // number of clips
  std::uint64_t seed = 1;

  [[nodiscard]] std::string text() const {
    return std::to_string(training) + " + " + std::to_string(evaluation) + " clips of " + size.text() + ", seed " +
           std::to_string(seed);
  }
};

inline std::array<char const*, 4> constexpr classes{"rest", "walk", "rear", "circle"};
inline std::array<Index, 4> constexpr shares{55, 25, 14, 6};  // percent
constexpr Index clips_per_video = 5, noisy_one_of = 20;

/// Returns the class of the number `drawn` in [0, 100), optionally without one class.
inline std::size_t class_of(Index drawn, std::size_t without = classes.size()) {
  Index all = 0, below = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) all += i == without ? 0 : shares[i];
  for (std::size_t i = 0; i < classes.size(); ++i) {
    below += i == without ? 0 : shares[i];
    if (drawn * all < 100 * below) return i;
  }
  return 0;
}

/// Draws one clip of a video into `out`.
inline void draw(std::size_t motion, ClipSize const& size, Philox const& video, Philox const& random,
                 std::uint8_t* out) {
  auto const side = static_cast<double>(std::min(size.height, size.width));
  std::uint64_t drawn = 0;
  auto const number = [&](double least, double most) { return least + (most - least) * uniform(random, drawn++); };
  auto const ground = 50 + 60 * uniform(video, 0), bright = 60 + 50 * uniform(video, 1);
  auto const radius = side * (0.08 + 0.05 * uniform(video, 2));
  auto const path = motion == 3 ? number(0.13, 0.2) * side : number(0.28, 0.45) * side;  // radius, or length
  auto const sign = number(-1, 1) < 0 ? -1.0 : 1.0, phase = number(0, 2 * std::numbers::pi);
  auto const margin = 0.5 * (motion == 3 ? 2 * path : path) + radius;
  auto const y0 = number(margin, static_cast<double>(size.height) - margin),
             x0 = number(margin, static_cast<double>(size.width) - margin);
  for (Index f = 0; f < size.frames; ++f) {
    auto const time = (static_cast<double>(f) + 0.5) / static_cast<double>(size.frames) - 0.5;  // -1/2 to 1/2
    auto const angle = phase + sign * time * 1.6 * std::numbers::pi;
    auto const y = y0 + (motion == 2   ? sign * path * time
                         : motion == 3 ? path * std::sin(angle)
                                       : 0.0),
               x = x0 + (motion == 1   ? sign * path * time
                         : motion == 3 ? path * std::cos(angle)
                                       : 0.0);
    auto const noise_key = mix(std::uint64_t{random(drawn, 1)[0]}, static_cast<std::uint64_t>(f));
    std::uint64_t noise = noise_key | 1;
    for (Index row = 0; row < size.height; ++row)
      for (Index column = 0; column < size.width; ++column) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        auto const distance = std::hypot(static_cast<double>(row) + 0.5 - y, static_cast<double>(column) + 0.5 - x);
        auto const covered = std::clamp(radius - distance + 0.5, 0.0, 1.0);
        *out++ = static_cast<std::uint8_t>(ground + bright * covered + static_cast<double>(noise >> 59));
      }
  }
}

/// Writes index.csv, classes.txt and a file for each video of up to five clips.
inline void write(std::filesystem::path const& folder, Recipe const& recipe) {
  std::filesystem::create_directories(folder / "videos");
  std::ofstream index(folder / "index.csv", std::ios::binary), names(folder / "classes.txt", std::ios::binary);
  for (auto const* name : classes) names << name << "\n";
  index << "file,first_frame,frames,label,video,split\n";
  auto const& size = recipe.size;
  Index videos = 0;
  for (auto const* split : {"train", "test"}) {
    auto const count = std::string_view(split) == "train" ? recipe.training : recipe.evaluation;
    auto const key = mix(mix(std::string_view(split)), recipe.seed);
    lockstep::KeyedPermutation const order(count, key);
    for (Index first = 0; first < count; first += clips_per_video, ++videos) {
      auto const clips = std::min(clips_per_video, count - first);
      std::vector<std::uint8_t> pixels(static_cast<std::size_t>(clips * size.pixels()));
      char name[32];
      std::snprintf(name, sizeof name, "video_%05lld", static_cast<long long>(videos));
      for (Index k = 0; k < clips; ++k) {
        Philox const random(mix(key, static_cast<std::uint64_t>(first + k)));
        // Exact shares of classes and noise, in a shuffled order.
        auto const place = order(first + k);
        auto const motion = class_of(place * 100 / count);
        auto const drawn = static_cast<Index>(100 * uniform(random(0, 2)[0]));
        auto const label = place % noisy_one_of == noisy_one_of - 1 ? class_of(drawn, motion) : motion;
        draw(motion, size, Philox(mix(key, mix(std::string_view(name)))), random, pixels.data() + k * size.pixels());
        index << "videos/" << name << ".npy," << k * size.frames << "," << size.frames << "," << classes[label] << ","
              << name << "," << split << "\n";
      }
      data::write_npy<std::uint8_t>((folder / "videos" / name).string() + ".npy", pixels,
                                    {clips * size.frames, size.height, size.width});
    }
  }
  if (!index.flush() || !names.flush()) throw DataError(folder.string() + ": the index cannot be written");
}

}  // namespace video_classification::synthetic
