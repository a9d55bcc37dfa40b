// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/class_counts.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Macro F1 score: the mean over classes of the harmonic mean of precision and recall. `F1{&Article::label, 4}` reports
/// it as "f1". Sequences and images count tokens or places. A class that is neither a label nor predicted does not
/// count.
/// The prediction is the largest logit, the first of equal ones. A single logit predicts 1 if it is above 0. Labels
/// equal to `ignored` do not count. The value is 0 without samples.
template <class Sample = detail::NoSample, class Label = int>
class F1 {
 public:
  /// @throws ConfigError if there are fewer than 2 classes
  F1(Label Sample::*label, Index classes, std::optional<Index> ignored = {}) : counts_("F1", label, classes, ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit F1(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : F1(detail::required_member<Label Sample::*>(), 2) {}
  /// Rejects a metric without the number of classes at compile time.
  explicit F1(Label Sample::*label) : F1(label, detail::required_number<Label>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the numbers of labels or classes differ, DataError if a label is not one of the classes, or
  /// a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    counts_.add(prediction, batch);
  }
  /// Returns three counts per class: labels, predictions, correct ones.
  [[nodiscard]] std::span<double> totals() noexcept { return counts_.totals(); }
  /// Returns the score in [0, 1]; 0 without samples.
  [[nodiscard]] double value() const noexcept {
    return counts_.mean([](double labels, double predicted, double both) { return 2 * both / (labels + predicted); });
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "f1"; }

 private:
  detail::ClassCounts<Sample, Label> counts_;
};

}}}  // namespace lockstep::train
