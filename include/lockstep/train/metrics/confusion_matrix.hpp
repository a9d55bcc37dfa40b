// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/class_decisions.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Counts for each label how often each class was predicted: `ConfusionMatrix{&Article::label, 4}`. Its values are
/// named "confusion.LABEL.PREDICTED" and are in row order. In a report with only this metric, metrics[label * classes +
/// predicted] is the count of `label` predicted as `predicted`. Predictions and `ignored` labels work as in F1.
template <class Sample = detail::NoSample, class Label = int>
class ConfusionMatrix {
 public:
  /// @throws ConfigError if there are fewer than 2 classes, or more than 4096
  ConfusionMatrix(Label Sample::*label, Index classes, std::optional<Index> ignored = {})
      : decisions_("ConfusionMatrix", label, classes, ignored), counts_(counts_of(classes)) {}
  /// Rejects a metric without a member at compile time.
  explicit ConfusionMatrix(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : ConfusionMatrix(detail::required_member<Label Sample::*>(), 2) {}
  /// Rejects a metric without the number of classes at compile time.
  explicit ConfusionMatrix(Label Sample::*label) : ConfusionMatrix(label, detail::required_number<Label>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the numbers of labels or classes differ, DataError if a label is not one of the classes, or
  /// a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    decisions_.each(prediction, batch, [this](Index label, Index predicted) {
      ++counts_[static_cast<std::size_t>(label * decisions_.classes() + predicted)];
    });
  }
  /// Returns the counts, [classes, classes] by label and prediction.
  [[nodiscard]] std::span<double> totals() noexcept { return counts_; }
  /// Calls each(name, count) for all pairs of classes.
  template <class Each>
  void values(Each const& each) const {
    auto const classes = static_cast<std::size_t>(decisions_.classes());
    for (std::size_t i = 0; i < counts_.size(); ++i)
      each("confusion." + std::to_string(i / classes) + "." + std::to_string(i % classes), counts_[i]);
  }
  /// Returns the common prefix of its values' names.
  [[nodiscard]] static constexpr char const* name() noexcept { return "confusion"; }

 private:
  static std::size_t counts_of(Index classes) {
    constexpr Index most = 4096;
    if (classes > most)
      throw ConfigError("ConfusionMatrix: there are " + std::to_string(classes) + " classes; the limit is " +
                        std::to_string(most) + ": use F1, or write_predictions for single samples");
    return static_cast<std::size_t>(classes * classes);
  }

  detail::ClassDecisions<Sample, Label> decisions_;
  std::vector<double> counts_;  // [label, predicted]
};

}}}  // namespace lockstep::train
