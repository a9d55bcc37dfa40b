// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Expected calibration error of predicted probabilities: `CalibrationError{&Click::clicked}`. Samples are divided into
/// `bins` equal intervals of a probability p. The value is the mean over the samples of |mean p - share of right
/// samples| of their interval. Smaller is better. The value is NaN without samples.
///
/// For a single logit, p is 1 / (1 + exp(-logit)), and samples with a label other than 0 count as right, as in
/// torchmetrics' BinaryCalibrationError with norm "l1". For one logit per class, p is the largest softmax probability,
/// and samples of that class count as right, as in MulticlassCalibrationError. A model is not calibrated if it was
/// trained with `positive_weight`, with class weights, or on a sample of the negatives.
/// @source Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated Probabilities Using Bayesian Binning (2015)
template <class Sample = detail::NoSample, class Label = int>
class CalibrationError {
 public:
  static constexpr bool higher_is_better = false;  ///< for best_by

  /// @throws ConfigError if `bins` is not in [1, 65536]
  explicit CalibrationError(Label Sample::*label, Index bins = 15) : label_(label) {
    if (bins < 1 || bins > 65536)
      throw ConfigError("CalibrationError: there are " + std::to_string(bins) + " bins; choose from 1 to 65536");
    totals_.resize(3 * static_cast<std::size_t>(bins));
  }
  /// Rejects a metric without a member at compile time.
  explicit CalibrationError(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : CalibrationError(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, 1] or [rows, …, classes], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError if the rows, places or tokens and the labels differ in number
  /// @throws DataError if a logit is not a number, or the label of one of several classes is not one of them
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_label("CalibrationError", prediction, batch[label_], {},
                       [&](auto const* logits, Index width, auto label) {
                         if (width == 1) {
                           count(1 / (1 + std::exp(-number(logits[0]))), label != decltype(label){});
                           return;
                         }
                         auto const own = detail::class_index("CalibrationError", label);
                         expect<DataError>(own >= 0 && own < width, [&] {
                           return "CalibrationError: a label is " + std::to_string(own) +
                                  "; the model predicts the classes 0 to " + std::to_string(width - 1);
                         });
                         Index best = 0;
                         for (Index c = 1; c < width; ++c)
                           if (number(logits[c]) > number(logits[best])) best = c;
                         double sum = 0;
                         for (Index c = 0; c < width; ++c) sum += std::exp(number(logits[c]) - number(logits[best]));
                         count(1 / sum, best == own);
                       });
  }
  /// Returns three totals per interval: samples, sum of probabilities, right samples.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the error in [0, 1]; NaN without samples.
  [[nodiscard]] double value() const noexcept {
    double counted = 0, sum = 0;
    for (std::size_t i = 0; i < totals_.size(); i += 3) {
      counted += totals_[i];
      sum += std::abs(totals_[i + 1] - totals_[i + 2]);
    }
    return counted > 0 ? sum / counted : std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "calibration_error"; }

 private:
  template <class Logit>
  [[nodiscard]] static double number(Logit logit) noexcept {
    return static_cast<double>(static_cast<float>(logit));
  }
  void count(double p, bool right) noexcept {
    auto const bins = totals_.size() / 3;
    // p is NaN if the largest of several logits is infinite. The error is then NaN, too.
    auto const bin = p < 1 ? std::min(static_cast<std::size_t>(p * static_cast<double>(bins)), bins - 1) : bins - 1;
    totals_[3 * bin] += 1;
    totals_[3 * bin + 1] += p;
    totals_[3 * bin + 2] += right ? 1 : 0;
  }

  Label Sample::*label_;
  std::vector<double> totals_;  // for each bin: samples, sum of p, right samples
};

}}}  // namespace lockstep::train
