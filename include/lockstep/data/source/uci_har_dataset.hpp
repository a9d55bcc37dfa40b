// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/parse_real.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/detail/excerpt.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// A window of 2.56 seconds of a phone's motion, sampled at 50 Hz, and the activity of its owner.
struct HarSample {
  std::vector<std::array<float, 9>> signals;  ///< [128]: body and total acceleration, gyroscope, each x, y, z
  std::int32_t label = 0;                     ///< from 0: walking, upstairs, downstairs, sitting, standing, lying
};

/// Reads one part ("train" or "test") of the data set "Human Activity Recognition Using Smartphones", from the folder
/// that its archive unpacks to. Files: `PART/Inertial Signals/*_PART.txt`, `PART/y_PART.txt` and, if it exists,
/// `PART/subject_PART.txt`, which groups samples. The signals stay in their files. The constructor reads labels,
/// subjects and the offsets of rows, about 90 bytes of memory per window. `get` reads and parses the nine rows of a
/// window. Copies share the index. Thread-safe. Errors name file, line, value and rule.
/// @throws DataError from the constructor if a file is missing or empty, or its number of rows differs from the labels
/// @throws DataError from the constructor if a label or subject is wrong
/// @throws DataError from `get` and `check` if a row is wrong
/// @source UCI Machine Learning Repository, data set 240 (Anguita et al. 2013)
class UciHarDataset {
 public:
  static constexpr Index classes = 6;   ///< number of labels
  static constexpr Index signals = 9;   ///< numbers of a step of a window
  static constexpr Index length = 128;  ///< steps of a window

  /// @param part "train" or "test"
  UciHarDataset(std::string const& folder, std::string const& part);

  /// Returns the number of windows.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(shared_->labels.size()); }
  /// Reads and parses window i of [0, size()).
  [[nodiscard]] HarSample get(Index i) const;
  /// Returns the extent of every sample.
  [[nodiscard]] static SampleExtent<HarSample> extent(Index) noexcept { return {{length}}; }
  /// Returns the label of sample i, without reading its signals.
  [[nodiscard]] std::int32_t label(Index i) const noexcept { return shared_->labels[static_cast<std::size_t>(i)]; }
  /// Returns file and line of the label: "har/train/y_train.txt:17".
  [[nodiscard]] std::string name(Index i) const { return shared_->label_lines.name(i); }
  /// Reads and parses every window once, on all processors, so that a program rejects wrong files before it trains.
  /// @throws DataError for the first window that has a wrong row
  void check() const;
  /// Returns a hash that changes with any byte of the part's files.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return shared_->hash; }
  /// Returns the number of people, who group the samples. Without the file of subjects, each sample is a separate
  /// group.
  [[nodiscard]] Index groups() const noexcept { return shared_->subjects.empty() ? size() : shared_->groups; }
  /// Returns the person of window i, in [0, groups()).
  [[nodiscard]] Index group(Index i) const noexcept;

 private:
  static constexpr std::array<char const*, 9> names{"body_acc_x",  "body_acc_y",  "body_acc_z",
                                                    "total_acc_x", "total_acc_y", "total_acc_z",
                                                    "body_gyro_x", "body_gyro_y", "body_gyro_z"};
  static constexpr std::size_t labels_at = names.size();
  struct Shared {
    TextLinesDataset label_lines;
    std::vector<TextLinesDataset> signals;
    std::vector<std::int8_t> labels;
    std::vector<std::int16_t> subjects;
    Index groups;
    std::uint64_t hash;
  };

  static void read_labels(Shared& shared);
  static void read_subjects(Shared& shared, TextLinesDataset const& lines);
  /// Reads exactly N finite numbers, separated by blanks.
  template <std::size_t Count>
  static void read_numbers(TextLinesDataset const& lines, Index i, std::array<float, Count>& out) {
    auto const line = lines.get(i);
    auto const is_blank = [](char c) { return c == ' ' || c == '\t'; };
    auto const *at = line.data(), *const end = at + line.size();
    std::size_t count = 0;
    for (;; ++count) {
      while (at != end && is_blank(*at)) ++at;
      if (at == end) break;
      float value = 0;
      auto const [after, error] = parse_real(at, end, value);
      if (error != std::errc{} || (after != end && !is_blank(*after)) || !std::isfinite(value))
        fail(lines, i,
             "value " + std::to_string(count + 1) + ": a finite number is expected, found " +
                 detail::excerpt({at, std::find_if(at, end, is_blank)}));
      if (count < Count) out[count] = value;
      at = after;
    }
    if (count != Count)
      fail(lines, i,
           "has " + std::to_string(count) + " value" + (count == 1 ? "" : "s") + "; a row of this file must have " +
               std::to_string(Count));
  }
  [[noreturn]] static void fail(TextLinesDataset const& lines, Index i, std::string const& why);

  std::shared_ptr<Shared const> shared_;
};
static_assert(GroupedDataset<UciHarDataset> && NamesSamples<UciHarDataset>);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/uci_har_dataset.ipp>
#endif
