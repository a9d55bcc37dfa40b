// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/core/mix.hpp>

namespace lockstep_test {

struct Text {
  std::vector<std::int32_t> tokens;
  int label;  // 0, 1 or 2
};

/// 64 texts of 1 to 24 tokens below 50. Every batch of 8 consecutive texts has one of 24 tokens, not every shuffled
/// batch.
inline std::vector<Text> uneven_texts() {
  std::vector<Text> all;
  for (int i = 0; i < 64; ++i) {
    Text text{{}, i % 3};
    for (int t = 0; t <= (i * 7) % 24; ++t) text.tokens.push_back(1 + (i * 11 + t * 5) % 49);
    all.push_back(std::move(text));
  }
  return all;
}

/// Texts of 1 to 6 tokens below 50.
inline std::vector<Text> random_texts(int count, std::uint64_t seed) {
  std::vector<Text> all;
  for (int i = 0; i < count; ++i) {
    auto const draw = [&](std::uint64_t k) { return lockstep::mix(seed, static_cast<std::uint64_t>(i), k); };
    Text text{{}, static_cast<int>(draw(0) % 3)};
    for (std::uint64_t t = 0; t < 1 + draw(1) % 6; ++t)
      text.tokens.push_back(static_cast<std::int32_t>(draw(t + 2) % 50));
    all.push_back(std::move(text));
  }
  return all;
}

}  // namespace lockstep_test
