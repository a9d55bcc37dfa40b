// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <lockstep/train/metrics/detail/binary_logits.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Area under the receiver operating characteristic curve: `Auc{&Click::clicked}`. It counts pairs of a sample with a
/// label other than 0 and a sample with label 0. The value is the share of pairs in which the first has the larger
/// logit. Equal logits count half. The value is 0 without pairs.
/// The model predicts one logit per sample or token. The value is exact: the metric keeps the logits, 4 bytes each, and
/// an evaluation gathers them from all devices and ranks. A program that adds up `totals()` by itself, and passes on no
/// `samples()`, gets the area over logits rounded to bfloat16, in which logits that differ by less than 0.4 % are
/// equal.
/// @source Fawcett: An introduction to ROC analysis (2006)
template <class Sample = detail::NoSample, class Label = int>
class Auc {
 public:
  /// @param label member that is 0 or another number
  explicit Auc(Label Sample::*label) : label_(label) {}
  /// Rejects a metric without a member at compile time.
  explicit Auc(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : Auc(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, 1], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError if the prediction is wider, or its rows and the labels differ in number
  /// @throws DataError if a logit is not a number
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    logits_.add("Auc", prediction, batch[label_]);
  }
  /// Returns counts of logits by bfloat16 value and label.
  [[nodiscard]] std::span<double> totals() noexcept { return logits_.totals(); }
  /// Returns the logits as bytes, for `add_samples` of a metric of another device or rank.
  [[nodiscard]] std::string samples() const { return logits_.samples(); }
  /// Adds the logits of another metric, which do not count in the totals: these add up apart.
  void add_samples(std::string_view bytes) { logits_.add_samples(bytes); }
  /// Returns the area in [0, 1].
  [[nodiscard]] double value() const {
    double zeros = 0, others = 0, right = 0;  // halves and whole numbers: sums below 2^52 are exact
    logits_.each_group([&](double zeros_in_group, double others_in_group) {
      right += others_in_group * (zeros + zeros_in_group / 2);
      zeros += zeros_in_group;
      others += others_in_group;
    });
    return zeros > 0 && others > 0 ? right / (zeros * others) : 0;
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "auc"; }

 private:
  Label Sample::*label_;
  detail::BinaryLogits logits_;
};

}}}  // namespace lockstep::train
