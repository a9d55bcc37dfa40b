// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/dataset.hpp>

#include "episodes.hpp"
#include "model.hpp"

namespace trajectory_transformer {

/// Scaling of the model's inputs, and the number of actions.
struct Scaling {
  std::vector<float> mean, factor;  ///< per number of a state: (state - mean) * factor
  float returns = 1;                ///< divisor of returns
  Index actions = 0;                ///< number of discrete actions, at least 2; 0: actions are continuous

  static constexpr Index most_actions = 10000;

  /// Returns the scaling of a trained model from the settings that are saved with its parameters.
  /// @throws DataError if a setting is missing or of another type
  [[nodiscard]] static Scaling saved(lockstep::json::Value const& settings) {
    auto const numbers = [&](char const* name) {
      std::vector<float> out;
      for (auto const& each : settings.at(name).array()) out.push_back(static_cast<float>(each.number()));
      return out;
    };
    return {numbers("state_mean"), numbers("state_factor"), static_cast<float>(settings.at("return_scale").number()),
            static_cast<Index>(settings.at("actions").integer())};
  }

  /// Computes the scaling from episodes at equal distances, of at most `most_numbers` numbers in total. Rejects or
  /// leaves out bad episodes. If `actions` is not 0, an action of `actions` or more is also bad.
  [[nodiscard]] static Scaling of(Episodes const& episodes, Index most_numbers, Index actions, BadEpisodes bad) {
    auto const width = static_cast<std::size_t>(episodes.state_width());
    double total = 0, largest = 0, steps = 0;
    for (Index i = 0; i < episodes.size(); ++i)
      total += static_cast<double>(episodes.steps(i) * (episodes.state_width() + episodes.control_width() + 2));
    auto const stride = static_cast<Index>(std::ceil(total / static_cast<double>(most_numbers)));
    Index most_action = 0;
    std::vector<double> sum(width), squares(width);
    for (Index i = 0; i < episodes.size(); i += std::max<Index>(1, stride)) {
      try {
        auto const part = episodes.read(i, 0, episodes.steps(i), actions > 0 ? actions : most_actions);
        for (std::size_t k = 0; k < part.states.size(); ++k) {
          double const state = part.states[k];
          sum[k % width] += state, squares[k % width] += state * state;
        }
        steps += static_cast<double>(episodes.steps(i));
        for (auto const action : part.actions) most_action = std::max<Index>(most_action, action);
        for (auto const to_come : part.to_come) largest = std::max(largest, std::abs(to_come));
      } catch (lockstep::DataError const&) {
        if (bad == BadEpisodes::refuse) throw;
      }
    }
    Scaling out;
    if (largest > 0) out.returns = static_cast<float>(largest);
    for (std::size_t k = 0; k < width; ++k) {
      double const mean = steps > 0 ? sum[k] / steps : 0, variance = steps > 0 ? squares[k] / steps - mean * mean : 0;
      out.mean.push_back(static_cast<float>(mean));
      out.factor.push_back(variance > 1e-12 * (1 + mean * mean) ? static_cast<float>(1 / std::sqrt(variance)) : 1);
    }
    if (episodes.control_width() == 0) out.actions = std::max<Index>(2, actions > 0 ? actions : most_action + 1);
    return out;
  }
};

/// Dataset of windows over episodes. With Begin::in_turn, each step is in the current region of exactly one window.
/// With Begin::drawn, windows begin at random steps with equal probability, by the sample's key.
class Windows {
 public:
  enum class Begin { in_turn, drawn };

  Windows(std::shared_ptr<Episodes const> episodes, Sizes const& sizes, Scaling scaling, Begin begin)
      : episodes_(std::move(episodes)), sizes_(sizes), scaling_(std::move(scaling)), begin_(begin) {
    auto offsets = std::make_shared<std::vector<Index>>(1, 0);
    for (Index i = 0; i < episodes_->size(); ++i)
      offsets->push_back(offsets->back() + (episodes_->steps(i) + sizes_.steps - 1) / sizes_.steps);
    offsets_ = std::move(offsets);
  }

  [[nodiscard]] Index size() const noexcept { return offsets_->back(); }
  [[nodiscard]] Window get(Index i) const {
    auto const episode = group(i);
    return window(episode, (i - (*offsets_)[static_cast<std::size_t>(episode)]) * sizes_.steps);
  }
  [[nodiscard]] Window get(Index i, data::SampleKey const& key) const {
    if (begin_ == Begin::in_turn) return get(i);
    auto const episode = group(i), before = sizes_.steps - 1;
    auto const places = episodes_->steps(episode) + before;  // a window that begins before the episode is shorter
    double const draw = lockstep::uniform(key.random("window")(0)[0]);
    return window(episode, std::min(places - 1, static_cast<Index>(draw * static_cast<double>(places))) - before);
  }
  [[nodiscard]] std::string name(Index i) const { return episodes_->name(group(i)); }
  [[nodiscard]] std::uint64_t fingerprint() const {
    return lockstep::mix(episodes_->fingerprint(), static_cast<std::uint64_t>(sizes_.steps),
                         static_cast<std::uint64_t>(sizes_.context));
  }
  /// Returns the number of groups: the windows of an episode are one group.
  [[nodiscard]] Index groups() const noexcept { return episodes_->size(); }
  [[nodiscard]] Index group(Index i) const noexcept {
    return std::upper_bound(offsets_->begin(), offsets_->end(), i) - offsets_->begin() - 1;
  }

 private:
  /// Returns the window whose current region has the existing steps of [begin, begin + steps).
  [[nodiscard]] Window window(Index episode, Index begin) const {
    auto const end = std::min(begin + sizes_.steps, episodes_->steps(episode));
    begin = std::max<Index>(0, begin);
    auto const first = std::max<Index>(0, begin - sizes_.context);
    auto part = episodes_->read(episode, first, end, sizes_.actions);
    Window out;
    out.states = std::move(part.states);
    out.actions = std::move(part.actions);
    out.controls = std::move(part.controls);
    auto const width = scaling_.mean.size();
    for (std::size_t k = 0; k < out.states.size(); ++k)
      out.states[k] = (out.states[k] - scaling_.mean[k % width]) * scaling_.factor[k % width];
    auto const count = static_cast<std::size_t>(end - first);
    out.returns.resize(count);
    for (std::size_t t = 0; t < count; ++t)
      out.returns[t] = static_cast<float>(part.to_come[t] / static_cast<double>(scaling_.returns));
    auto const previous = static_cast<std::size_t>(begin - first);
    if (sizes_.actions > 0) {
      out.targets.assign(out.actions.begin(), out.actions.end());
      std::fill_n(out.targets.begin(), previous, -1);
    } else {
      out.counts.assign(count, {true});
      std::fill_n(out.counts.begin(), previous, std::array{false});
    }
    return out;
  }

  std::shared_ptr<Episodes const> episodes_;
  std::shared_ptr<std::vector<Index> const> offsets_;
  Sizes sizes_;
  Scaling scaling_;
  Begin begin_;
};

}  // namespace trajectory_transformer
