// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/columns.hpp>

namespace lockstep_test {

enum class Colour : std::uint8_t { red, green };
struct Point {
  float x = 0;
  std::vector<std::uint8_t> trace;
};
/// One member of each kind.
struct Everything {
  std::vector<std::int32_t> tokens;
  int label = 0;
  std::string title;
  std::array<double, 3> position{};
  std::optional<float> score;
  Colour colour = Colour::red;
  Point point;
  std::vector<std::array<float, 2>> track;
  bool flag = false;
  int other = 0;
};

inline Everything everything(int seed, std::size_t length) {
  Everything s;
  for (std::size_t i = 0; i < length; ++i) {
    s.tokens.push_back(seed * 100 + static_cast<int>(i));
    s.point.trace.push_back(static_cast<std::uint8_t>(seed + 1));
    s.track.push_back({static_cast<float>(seed), static_cast<float>(i)});
  }
  s.label = seed;
  s.title = std::string(length, static_cast<char>('a' + seed));
  s.position = {1.0 * seed, 2.0 * seed, 3.0 * seed};
  if (seed % 2) s.score = static_cast<float>(seed);
  s.colour = seed % 2 ? Colour::green : Colour::red;
  s.point.x = static_cast<float>(seed) / 2;
  s.flag = seed % 2 == 1;
  s.other = -seed;
  return s;
}

/// Does a loader's calls to a collate, for one batch: positions 100, 101, ... of epoch 7.
template <class Sample, class Collate>
struct Collated {
  lockstep::data::Slab slab;
  std::vector<lockstep::data::SampleExtent<Sample>> extents;
  std::vector<lockstep::Index> positions;
  typename Collate::template Batch<lockstep::data::InMemoryDataset<Sample>, lockstep::HostSpace> batch;

  explicit Collated(std::vector<Sample> const& samples, Collate const& collate = {}) { make(samples, collate); }
  void make(std::vector<Sample> const& samples, Collate const& collate = {}) {
    extents.clear();
    positions.clear();
    for (auto const& sample : samples) extents.push_back(lockstep::data::extent_of(sample));
    for (std::size_t i = 0; i < samples.size(); ++i) positions.push_back(static_cast<lockstep::Index>(100 + i));
    batch = collate.plan(lockstep::data::BatchPlan<Sample>{extents, positions, 7}, slab);
    for (std::size_t i = 0; i < samples.size(); ++i) collate.row(batch, static_cast<lockstep::Index>(i), samples[i]);
    collate.finish(batch, slab);
  }
};

}  // namespace lockstep_test
