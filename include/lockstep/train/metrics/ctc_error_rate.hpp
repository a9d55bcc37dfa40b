// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/loss/ctc_best_path.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Edit distance between the labels that nn::ctc_best_path reads and the true labels, divided by the number of true
/// labels: `CtcErrorRate{&Clip::words}`. It is the word error rate if labels are words, and the character error rate if
/// they are characters. It takes the labels of nn::ctc_loss. The value is NaN without labels. Smaller is better.
/// @source Levenshtein distance
template <class Sample = detail::NoSample, class Labels = std::vector<int>>
class CtcErrorRate {
 public:
  static constexpr bool higher_is_better = false;  ///< for best_by

  /// @param blank class of the blank, as in nn::ctc_loss
  explicit CtcErrorRate(Labels Sample::*labels, Index blank = 0) : labels_(labels), blank_(blank) {}
  /// Rejects a metric without a member at compile time.
  explicit CtcErrorRate(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : CtcErrorRate(detail::required_member<Labels Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction a Sequence of logits on the host
  /// @throws ConfigError if the blank is not one of the classes
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    static_assert(
        requires { prediction.layout; },
        "Lockstep: CtcErrorRate reads logits: predict returns a Sequence. If it returns several in a struct, a "
        "train::HeadMetric names one; see docs/reference/model.md");
    auto const column = batch[labels_];
    using Label = std::remove_const_t<std::remove_pointer_t<decltype(column.values.data)>>;
    static_assert(
        nn::SequenceColumn<decltype(column), HostSpace> && (std::is_integral_v<Label> || std::is_enum_v<Label>),
        "Lockstep: CtcErrorRate takes sequences of integers or enumerators as labels, as nn::ctc_loss does");
    expect<ConfigError>(blank_ >= 0 && blank_ < prediction.width(), [&] {
      return "CtcErrorRate: the blank is " + std::to_string(blank_) + " and the model predicts " +
             std::to_string(prediction.width()) + " classes; it must be one of them, the blank of nn::ctc_loss";
    });
    auto const layout = nn::layout_of<HostSpace>(column, prediction.layout.positions);
    for (Index row = 0; row < layout.rows; ++row) {
      auto const decoded = nn::ctc_best_path(prediction, row, blank_);
      auto const count = layout.tokens(row);
      totals_[0] += static_cast<double>(
          distance(decoded, std::span(column.values.data + layout.start(row), static_cast<std::size_t>(count))));
      totals_[1] += static_cast<double>(count);
    }
  }
  /// Returns the edit distances and the true labels.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the rate, at least 0; above 1 with more errors than labels; NaN without labels.
  [[nodiscard]] double value() const noexcept {
    return totals_[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : totals_[0] / totals_[1];
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "error_rate"; }

 private:
  /// Returns the number of insertions, deletions and changes that turn one sequence of labels into the other.
  template <class Expected>
  [[nodiscard]] static Index distance(std::vector<std::int32_t> const& decoded, Expected const& expected) {
    std::vector<Index> row(expected.size() + 1);  // distances to each prefix of `expected`
    std::iota(row.begin(), row.end(), Index{0});
    for (auto const label : decoded) {
      auto diagonal = row[0]++;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        auto const above = row[i + 1];
        row[i + 1] = std::min({diagonal + (static_cast<Index>(expected[i]) == label ? 0 : 1), above + 1, row[i] + 1});
        diagonal = above;
      }
    }
    return row.back();
  }

  Labels Sample::*labels_;
  Index blank_;
  std::array<double, 2> totals_{};  // errors, labels
};

}}}  // namespace lockstep::train
