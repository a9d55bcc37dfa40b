// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/source/write_npy.hpp>

#include "model.hpp"

/// Synthetic episodes. Each state shows a symbol as sines with noise. Some players gain a point in each step: their
/// correct action is the number of the current symbol. Others are late and lose a point in each step: their correct
/// action is the number of the previous symbol.
/// One action in ten is random and wrong, so no model predicts more than 90 % of the actions in new episodes. A model
/// that is linear in return, state and previous state cannot choose between the two symbols, and predicts about half.
namespace trajectory_transformer {

struct Synthetic {
  Index episodes, steps, actions;  ///< the length of an episode is from 1 to twice `steps`
  std::uint64_t seed;

  static constexpr Index state_width = 17;
  static constexpr double share_right = 0.9;

  [[nodiscard]] std::string recipe() const {
    return std::to_string(episodes) + " episodes of 1 to " + std::to_string(2 * steps) + " steps, " +
           std::to_string(actions) + " actions, seed " + std::to_string(seed);
  }
  /// Writes the concatenated format.
  void operator()(std::filesystem::path const& folder) const {
    std::vector<float> states, rewards;
    std::vector<std::int64_t> chosen, lengths;
    for (Index episode = 0; episode < episodes; ++episode) {
      lockstep::Philox const random(lockstep::mix(seed, static_cast<std::uint64_t>(episode)));
      std::uint64_t draws = 0;
      auto const draw = [&] { return lockstep::uniform(random, ++draws); };
      auto const below = [&](Index n) { return std::min(n - 1, static_cast<Index>(draw() * static_cast<float>(n))); };
      bool const late = below(2) == 1;
      lengths.push_back(1 + below(2 * steps));
      Index before = -1;
      for (auto left = lengths.back(); left > 0; --left) {
        auto const symbol = below(actions);
        auto const right = late && before >= 0 ? before : symbol;
        auto const wrong = (right + 1 + below(actions - 1)) % actions;
        chosen.push_back(draw() < share_right ? right : wrong);
        rewards.push_back(late ? -1.0F : 1.0F);
        for (Index k = 1; k <= state_width; ++k)
          states.push_back(std::sin(static_cast<float>((symbol + 1) * k)) + 0.2F * draw());
        before = symbol;
      }
    }
    auto const file = [&](char const* name) { return (folder / name).string(); };
    auto const count = std::ssize(rewards);
    lockstep::data::write_npy<float>(file("observations.npy"), states, {count, state_width});
    lockstep::data::write_npy<std::int64_t>(file("actions.npy"), chosen, {count});
    lockstep::data::write_npy<float>(file("rewards.npy"), rewards, {count});
    lockstep::data::write_npy<std::int64_t>(file("episode_lengths.npy"), lengths, {std::ssize(lengths)});
  }
};

}  // namespace trajectory_transformer
