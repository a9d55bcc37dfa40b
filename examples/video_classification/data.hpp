// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/lockstep.hpp>

#include "clips.hpp"

namespace video_classification {

/// Returns the clips on one side of the index's split.
[[nodiscard]] inline data::Subset<Clips> clips_of(Clips const& clips, Part part) {
  std::vector<Index> chosen;
  for (Index i = 0; i < clips.size(); ++i)
    if (clips.part(i) == part) chosen.push_back(i);
  return {clips, std::move(chosen)};
}

struct Parts {
  data::Subset<Clips> training, evaluation;
  std::vector<Clips> folders;
};

/// Reads --data and --eval-data. Without the latter it divides the clips by their split or, without a split, by video:
/// a seeded tenth of the videos is for evaluation.
/// @param classes of saved parameters; empty: those of --data
/// @throws DataError if a video is on both sides
[[nodiscard]] inline Parts read_parts(std::string const& folder, std::string const& evaluation, ClipSize const& size,
                                      std::uint64_t seed, int threads = 1, data::ClassNames const& classes = {}) {
  Clips const known(folder, size, classes, threads);
  bool const has_split = known.part(0) != Part::unspecified;
  auto const all = [](Clips const& clips) {
    std::vector<Index> numbers(static_cast<std::size_t>(clips.size()));
    std::iota(numbers.begin(), numbers.end(), Index{0});
    return data::Subset<Clips>(clips, std::move(numbers));
  };
  if (!evaluation.empty()) {
    Clips const others(evaluation, known.clip_size(), known.classes(), threads);
    std::set<std::string> const held_out(others.videos().begin(), others.videos().end());
    for (Index i = 0; i < known.size(); ++i) {
      auto const& video = known.videos()[static_cast<std::size_t>(known.group(i))];
      if (known.part(i) != Part::evaluation && held_out.contains(video))
        throw DataError("the video \"" + video + "\" is in --data " + folder + " and in --eval-data " + evaluation +
                        ", which makes the accuracy too high; leave it out of one");
    }
    return {has_split ? clips_of(known, Part::training) : all(known), all(others), {known, others}};
  }
  if (!has_split) {
    auto const parts = data::hold_out(known, 0.1, seed);
    return {parts.training, parts.evaluation, {known}};
  }
  Parts parts{clips_of(known, Part::training), clips_of(known, Part::evaluation), {known}};
  if (parts.training.size() == 0 || parts.evaluation.size() == 0)
    throw DataError(folder + "/index.csv: all clips have the split " + (parts.training.size() == 0 ? "test" : "train") +
                    "; both are needed, or --eval-data");
  return parts;
}

}  // namespace video_classification
