// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/source/uci_har_dataset.hpp>

/// Synthetic motion in the file format of "Human Activity Recognition Using Smartphones".
///
/// Walking, walking upstairs and walking downstairs are oscillations of different pace around an upright position.
/// Standing is that position alone; sitting and lying are other positions. Phase, strength, tilt and noise are drawn
/// for each window. A linear classifier of the raw numbers separates positions, but not paces of unknown phase. One
/// window in 20 has a wrong label, so no classifier exceeds an accuracy of 0.95.
namespace activity_classification {

inline constexpr double synthetic_ceiling = 0.95;

class SyntheticMotion {
 public:
  explicit SyntheticMotion(std::uint64_t seed) : seed_(seed) {}

  /// Returns the window of a number.
  [[nodiscard]] lockstep::data::HarSample operator()(std::uint64_t index) const {
    struct Activity {
      double pace, strength;  // oscillations per second, g
      std::array<double, 3> down;
    };
    static constexpr std::array<Activity, 6> activities{{{1.9, 0.3, {1, 0, 0}},
                                                         {1.4, 0.3, {1, 0, 0}},
                                                         {2.5, 0.3, {1, 0, 0}},
                                                         {0, 0, {0.7, 0.5, 0.5}},
                                                         {0, 0, {1, 0, 0}},
                                                         {0, 0, {0, 0.8, 0.6}}}};
    auto const number = lockstep::mix(seed_, index);
    lockstep::Philox const draws(number);
    std::uint64_t drawn = 0;
    auto const draw = [&] { return 2.0 * lockstep::uniform(draws, drawn++) - 1; };  // from -1 to 1
    auto const activity = number % activities.size();
    auto const& [pace, strength, down] = activities[activity];
    double const phase = draw() * std::numbers::pi, own_pace = pace * (1 + 0.08 * draw()),
                 own_strength = strength * (1 + 0.3 * draw());
    std::array<double, 3> const tilt{0.1 * draw(), 0.1 * draw(), 0.1 * draw()};
    auto const wrong = (activity + 1 + (number >> 8) % (activities.size() - 1)) % activities.size();
    lockstep::data::HarSample sample{
        std::vector<std::array<float, 9>>(static_cast<std::size_t>(lockstep::data::UciHarDataset::length)),
        static_cast<std::int32_t>(index % 20 == 19 ? wrong : activity)};
    for (std::size_t t = 0; t < sample.signals.size(); ++t) {
      double const angle = phase + 2 * std::numbers::pi * own_pace * static_cast<double>(t) / 50;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        double const body = own_strength * std::sin(angle + static_cast<double>(axis)) + 0.1 * draw();
        sample.signals[t][axis] = static_cast<float>(body);
        sample.signals[t][3 + axis] = static_cast<float>(body + down[axis] + tilt[axis]);
        sample.signals[t][6 + axis] = static_cast<float>(2 * own_strength * std::cos(angle) + 0.2 * draw());
      }
    }
    return sample;
  }

 private:
  std::uint64_t seed_;
};

/// Writes the windows [first, first + count) as a part of a data set, assigned to 20 people in turn.
/// @throws lockstep::DataError if a file cannot be written
inline void write_part(std::filesystem::path const& folder, std::string const& part, SyntheticMotion const& motion,
                       lockstep::Index first, lockstep::Index count) {
  static constexpr std::array names{"body_acc_x",  "body_acc_y",  "body_acc_z",  "total_acc_x", "total_acc_y",
                                    "total_acc_z", "body_gyro_x", "body_gyro_y", "body_gyro_z"};
  auto const base = folder / part;
  std::filesystem::create_directories(base / "Inertial Signals");
  std::array<std::ofstream, names.size()> files;
  for (std::size_t i = 0; i < names.size(); ++i)
    files[i].open(base / "Inertial Signals" / (std::string(names[i]) + "_" + part + ".txt"));
  std::ofstream labels(base / ("y_" + part + ".txt")), people(base / ("subject_" + part + ".txt"));
  std::string row;
  for (lockstep::Index i = first; i < first + count; ++i) {
    auto const window = motion(static_cast<std::uint64_t>(i));
    for (std::size_t channel = 0; channel < files.size(); ++channel) {
      row.clear();
      for (auto const& step : window.signals) {
        std::array<char, 32> text{};
        auto const end = std::to_chars(text.begin(), text.end(), step[channel], std::chars_format::fixed, 4).ptr;
        row.append(1, ' ').append(text.data(), end);
      }
      files[channel] << row << '\n';
    }
    labels << window.label + 1 << '\n';
    people << i % 20 + 1 << '\n';
  }
  bool whole = labels.flush() && people.flush();
  for (auto& file : files) whole = file.flush() && whole;
  if (!whole) throw lockstep::DataError(base.string() + ": cannot be written; free some space on that disk");
}

}  // namespace activity_classification
