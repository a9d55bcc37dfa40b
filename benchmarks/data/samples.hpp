// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep_bench {

using lockstep::Index;

struct Clip {
  std::vector<std::uint8_t> pixels;  // 17 x 256 x 256
};
struct Pose {
  std::vector<std::array<float, 399>> frames;  // 133 x 3
};
struct Trajectory {
  std::vector<std::array<float, 64>> states;
};
struct Tokens {
  std::array<std::uint16_t, 1024> ids{};
};
struct Tiny {
  float x = 0, y = 1;
};

/// Spread over [0, 1) evenly: equal for every run and for the peers in Python.
inline double part(Index i) {
  auto const x = static_cast<double>(i) * 0.6180339887498949;
  return x - std::floor(x);
}
inline Index trajectory_length(Index i) { return 80 + static_cast<Index>(part(i) * 81); }
inline Index pose_length(Index i) { return static_cast<Index>(30 * std::pow(20.0, part(i))); }

template <class Sample, class Make>
std::vector<Sample> samples(Index count, Make&& make) {
  std::vector<Sample> out;
  for (Index i = 0; i < count; ++i) out.push_back(make(i));
  return out;
}

}  // namespace lockstep_bench
