// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/parse_real.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/sample_hash.hpp>
#include <lockstep/data/source/detail/excerpt.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// 2.56 seconds of a telephone's motion, 50 times a second, and what its owner was doing.
struct HarSample {
  std::vector<std::array<float, 9>> signals;  ///< [128]: body and total acceleration, gyroscope, each x, y, z
  std::int32_t label = 0;                     ///< from 0: walking, upstairs, downstairs, sitting, standing, lying
};

/// One part ("train" or "test") of the data set "Human Activity Recognition Using Smartphones", from the folder that
/// its archive unpacks to: `PART/Inertial Signals/*_PART.txt`, `PART/y_PART.txt` and, where it is there,
/// `PART/subject_PART.txt`, by which samples are grouped. All of it is held in memory, 4.6 KB a sample, and given by
/// reference.
/// @throws DataError when a file is missing, has another number of rows than the others, or a number cannot be read:
/// names file and line
/// @source UCI Machine Learning Repository, data set 240 (Anguita et al. 2013)
class UciHarDataset {
 public:
  UciHarDataset(std::string const& folder, std::string const& part) {
    auto held = std::make_shared<Held>();
    auto const base = folder + "/" + part + "/";
    TextLinesDataset const labels(base + "y_" + part + ".txt");
    held->samples.resize(static_cast<std::size_t>(labels.size()));
    for (Index i = 0; i < labels.size(); ++i) {
      std::array<float, 1> label{};
      read_numbers(labels, i, label);
      if (!(label[0] >= 1 && label[0] <= 6 && label[0] == static_cast<float>(static_cast<int>(label[0]))))
        fail(labels, i, "a class from 1 to 6 is expected, found " + detail::excerpt(labels.get(i)));
      auto& sample = held->samples[static_cast<std::size_t>(i)];
      sample.label = static_cast<std::int32_t>(label[0]) - 1;
      sample.signals.resize(length);
    }
    for (std::size_t channel = 0; channel < names.size(); ++channel)
      read_channel(*held, base + "Inertial Signals/" + names[channel] + "_" + part + ".txt", channel);
    if (::access((base + "subject_" + part + ".txt").c_str(), F_OK) == 0) {
      TextLinesDataset const subjects(base + "subject_" + part + ".txt");
      check_rows(*held, subjects);
      for (Index i = 0; i < subjects.size(); ++i) {
        std::array<float, 1> subject{};
        read_numbers(subjects, i, subject);
        if (!(subject[0] >= 0 && subject[0] < 1000)) fail(subjects, i, "a subject's number is expected");
        held->subjects.push_back(static_cast<Index>(subject[0]));
        held->groups = std::max(held->groups, held->subjects.back() + 1);
      }
    }
    for (auto const& each : held->samples) held->hash = detail::hash_on(held->hash, each);
    held_ = std::move(held);
  }

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(held_->samples.size()); }
  [[nodiscard]] HarSample const& get(Index i) const noexcept { return held_->samples[static_cast<std::size_t>(i)]; }
  /// Of the signals and labels.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return held_->hash; }
  /// The people, by whom samples belong together; without the file of subjects each sample is on its own.
  [[nodiscard]] Index groups() const noexcept { return held_->subjects.empty() ? size() : held_->groups; }
  [[nodiscard]] Index group(Index i) const noexcept {
    return held_->subjects.empty() ? i : held_->subjects[static_cast<std::size_t>(i)];
  }

 private:
  static constexpr std::size_t length = 128;
  static constexpr std::array<char const*, 9> names{"body_acc_x",  "body_acc_y",  "body_acc_z",
                                                    "total_acc_x", "total_acc_y", "total_acc_z",
                                                    "body_gyro_x", "body_gyro_y", "body_gyro_z"};
  struct Held {
    std::vector<HarSample> samples;
    std::vector<Index> subjects;
    Index groups = 0;
    std::uint64_t hash = 0;
  };

  static void read_channel(Held& held, std::string path, std::size_t channel) {
    TextLinesDataset const lines(std::move(path));
    check_rows(held, lines);
    std::array<float, length> numbers{};
    for (Index i = 0; i < lines.size(); ++i) {
      read_numbers(lines, i, numbers);
      auto& signals = held.samples[static_cast<std::size_t>(i)].signals;
      for (std::size_t t = 0; t < length; ++t) signals[t][channel] = numbers[t];
    }
  }
  static void check_rows(Held const& held, TextLinesDataset const& lines) {
    if (static_cast<std::size_t>(lines.size()) == held.samples.size()) return;
    fail(lines, lines.size() - 1,
         "is the last of " + std::to_string(lines.size()) + " rows, and there are " +
             std::to_string(held.samples.size()) + " labels; the files belong to different parts");
  }
  /// Exactly as many numbers as are asked for, with blanks between them.
  template <std::size_t N>
  static void read_numbers(TextLinesDataset const& lines, Index i, std::array<float, N>& out) {
    auto const line = lines.get(i);
    std::string_view rest = line;
    std::size_t count = 0;
    for (;; ++count) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
      if (rest.empty()) break;
      float value = 0;
      auto const [end, error] = parse_real(rest.data(), rest.data() + rest.size(), value);
      auto const used = static_cast<std::size_t>(end - rest.data());
      if (error != std::errc{} || (used < rest.size() && rest[used] != ' ' && rest[used] != '\t'))
        fail(lines, i, "a number is expected, found " + detail::excerpt(rest));
      if (count < N) out[count] = value;
      rest.remove_prefix(used);
    }
    if (count != N) fail(lines, i, "has " + std::to_string(count) + " numbers; " + std::to_string(N) + " are expected");
  }
  [[noreturn]] static void fail(TextLinesDataset const& lines, Index i, std::string const& why) {
    throw DataError(lines.name(i) + ": " + why);
  }

  std::shared_ptr<Held const> held_;
};
static_assert(GroupedDataset<UciHarDataset>);

}  // namespace lockstep::inline LOCKSTEP_ABI::data
