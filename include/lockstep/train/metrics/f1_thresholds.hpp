// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/metrics/detail/each_decision.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Probabilities above which to predict each label, so that its F1 score is largest: `F1Thresholds{&Mail::tags,
/// {"urgent", "invoice"}}` reports "threshold_urgent" and "threshold_invoice". Evaluate samples that training has not
/// seen, and measure with others: MultilabelF1 takes the thresholds. Predictions and labels as for MultilabelF1.
///
/// Logits are counted in 1024 intervals of 1/32, from -16 to 16; those beyond count in the outer intervals. Of
/// thresholds with equal scores it returns the middle. The threshold is 0 if it is best to predict the label always,
/// and 0.5 if no sample has the label.
/// @determinism bitwise, for any number of devices and ranks
template <class Sample = detail::NoSample, class Labels = std::vector<float>>
class F1Thresholds {
 public:
  /// @param labels member with a 0 or 1 for each label: a std::array, or a number if there is one label
  /// @param names of the labels, in the order of the logits
  /// @throws ConfigError if there is no name
  F1Thresholds(Labels Sample::*labels, std::vector<std::string> names)
      : labels_(labels), names_(std::move(names)), totals_(2 * intervals * names_.size()) {
    if (names_.empty()) throw ConfigError("F1Thresholds: there are no names; give one for each label");
  }
  /// Rejects a metric without a member at compile time.
  explicit F1Thresholds(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : F1Thresholds(detail::required_member<Labels Sample::*>(), {""}) {}

  /// Counts one batch.
  /// @shape prediction [rows, labels], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError for another number of logits or labels than of names
  /// @throws DataError for a label other than 0 and 1, or a logit that is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_decision(
        "F1Thresholds", prediction, batch[labels_], std::ssize(names_),
        [&](double logit, bool is_positive, Index number) {
          auto const at = std::ceil(std::clamp(logit, -15.99, 16.0) * per_unit) - 1 + intervals / 2;
          ++totals_[2 * (static_cast<std::size_t>(number) * intervals + static_cast<std::size_t>(at)) +
                    (is_positive ? 1 : 0)];
        });
  }
  /// Returns two counts for each label and interval of logits: rows without the label, and rows with it.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Calls each(name, threshold) for each label.
  template <class Each>
  void values(Each const& each) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      each("threshold_" + names_[i], threshold(std::span(totals_).subspan(2 * intervals * i, 2 * intervals)));
  }
  /// Returns the name of the metric in messages.
  [[nodiscard]] static constexpr char const* name() noexcept { return "f1_thresholds"; }

 private:
  static constexpr std::size_t intervals = 1024;
  static constexpr double per_unit = 32;

  /// Returns the best threshold of one label, from its counts.
  static double threshold(std::span<double const> counts) {
    double positives = 0, best = 0, predicted = 0, found = 0;
    for (std::size_t k = 1; k < counts.size(); k += 2) positives += counts[k];
    if (positives == 0) return 0.5;
    std::size_t first = 0, last = 0;  // the best intervals to begin with
    for (auto k = intervals; k-- > 0;) {
      predicted += counts[2 * k] + counts[2 * k + 1];
      found += counts[2 * k + 1];
      double const f1 = 2 * found / (positives + predicted);
      if (f1 > best) {
        best = f1;
        first = last = k;
      } else if (f1 == best && k + 1 == first) {
        first = k;
      }
    }
    if (first == 0) return 0;
    auto const middle = static_cast<double>(first + last) / 2 - double{intervals / 2};
    return 1 / (1 + std::exp(-middle / per_unit));
  }

  Labels Sample::*labels_;
  std::vector<std::string> names_;
  std::vector<double> totals_;
};

}}}  // namespace lockstep::train
