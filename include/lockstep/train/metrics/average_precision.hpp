// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <lockstep/train/metrics/detail/binary_logits.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Average precision, a summary of the precision-recall curve for rare labels, as scikit-learn's
/// average_precision_score: `AveragePrecision{&Click::clicked}`. Each sample with a label other than 0 contributes the
/// precision among all samples whose logit is at least its own. The value is the mean of these precisions; a constant
/// prediction has the share of such labels. The value is 0 without such a label.
/// The model predicts one logit per sample or token. Exact for any number of devices and ranks, as Auc.
template <class Sample = detail::NoSample, class Label = int>
class AveragePrecision {
 public:
  /// @param label member that is 0 or another number
  explicit AveragePrecision(Label Sample::*label) : label_(label) {}
  /// Rejects a metric without a member at compile time.
  explicit AveragePrecision(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : AveragePrecision(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, 1], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError if the prediction is wider, or its rows and the labels differ in number
  /// @throws DataError if a logit is not a number
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    logits_.add("AveragePrecision", prediction, batch[label_]);
  }
  /// Returns counts of logits by bfloat16 value and label.
  [[nodiscard]] std::span<double> totals() noexcept { return logits_.totals(); }
  /// Returns the logits as bytes, for `add_samples` of a metric of another device or rank.
  [[nodiscard]] std::string samples() const { return logits_.samples(); }
  /// Adds the logits of another metric, which do not count in the totals: these add up apart.
  void add_samples(std::string_view bytes) { logits_.add_samples(bytes); }
  /// Returns the average precision in [0, 1]; 0 without a label other than 0.
  [[nodiscard]] double value() const {
    auto const counts = logits_.counts();
    double zeros = counts[0], others = counts[1], sum = 0;  // zeros, others: whose logit is at least the group's
    logits_.each_group([&](double zeros_in_group, double others_in_group) {
      sum += others_in_group * (others / (zeros + others));
      zeros -= zeros_in_group;
      others -= others_in_group;
    });
    return counts[1] > 0 ? sum / counts[1] : 0;
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "average_precision"; }

 private:
  Label Sample::*label_;
  detail::BinaryLogits logits_;
};

}}}  // namespace lockstep::train
