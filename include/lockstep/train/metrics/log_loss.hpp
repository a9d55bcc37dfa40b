// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Mean of -log(predicted probability of the label), as scikit-learn's log_loss: `LogLoss{&Click::clicked}`. Unlike the
/// loss of an evaluation it has no class weights, sample weights, smoothing or auxiliary parts, so that models with
/// different losses compare. Probabilities are the softmax of the logits; a single logit x gives label 1 the
/// probability 1 / (1 + exp(-x)). Sequences and images count tokens or places. Labels equal to `ignored` do not count.
/// Smaller is better. The value is NaN without samples.
template <class Sample = detail::NoSample, class Label = int>
class LogLoss {
 public:
  static constexpr bool higher_is_better = false;  ///< for best_by

  /// @param label member of the samples
  /// @param ignored label that does not count
  explicit LogLoss(Label Sample::*label, std::optional<Index> ignored = {}) : label_(label), ignored_(ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit LogLoss(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : LogLoss(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], or [rows, …, 1] for labels 0 and 1: a Variable on the host or a Sequence of
  /// such tokens, with one label for each row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens
  /// @throws DataError if a label is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class("LogLoss", prediction, batch[label_], ignored_,
                       [&](auto const* logits, Index width, Index label) {
                         auto const classes = std::max<Index>(width, 2);
                         expect<DataError>(label >= 0 && label < classes, [&] {
                           return "LogLoss: a label is " + std::to_string(label) +
                                  "; the model predicts the classes 0 to " + std::to_string(classes - 1);
                         });
                         totals_[0] += loss_of(logits, width, label);
                         totals_[1] += 1;
                       });
  }
  /// Returns the sum of the losses and their number.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the mean in nats; NaN without samples.
  [[nodiscard]] double value() const noexcept {
    return totals_[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : totals_[0] / totals_[1];
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "log_loss"; }

 private:
  /// Returns log(sum of exp(logits)) - logits[label], accurate for large logits.
  template <class Logit>
  [[nodiscard]] static double loss_of(Logit const* logits, Index width, Index label) {
    if (width == 1) {
      auto const x = static_cast<double>(static_cast<float>(logits[0])) * (label == 1 ? -1 : 1);
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    }
    auto const at = [&](Index c) { return static_cast<double>(static_cast<float>(logits[c])); };
    double largest = at(0), sum = 0;
    for (Index c = 1; c < width; ++c) largest = std::max(largest, at(c));
    for (Index c = 0; c < width; ++c) sum += std::exp(at(c) - largest);
    return std::log(sum) - (at(label) - largest);
  }

  Label Sample::*label_;
  std::optional<Index> ignored_;
  std::array<double, 2> totals_{};  // losses, counted
};

}}}  // namespace lockstep::train
