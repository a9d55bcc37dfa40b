// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/class_counts.hpp>
#include <lockstep/train/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The F1 score, the harmonic mean of precision and recall, of each class, and of these the mean (macro):
/// `F1{&Article::label, 4}`, by the name "f1"; of sequences or pictures, over tokens or places. A class that is neither
/// a label nor predicted does not count. What is predicted is the largest logit, the first of equal ones; a single
/// logit says 1 above 0. What has the `ignored` label is left out. No samples give 0.
template <class Sample, class Label>
class F1 {
 public:
  /// @throws ConfigError when there are fewer than two classes
  F1(Label Sample::*label, Index classes, std::optional<Index> ignored = {}) : counts_("F1", label, classes, ignored) {}

  /// @shape prediction [rows, …, classes], a Variable on the host, or a Sequence of such tokens, with a label for each
  /// row, place or slot
  /// @throws ShapeError when the numbers of labels or classes differ, DataError when a label is none of the classes
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    counts_.add(prediction, batch);
  }
  [[nodiscard]] std::span<double> totals() noexcept { return counts_.totals(); }
  [[nodiscard]] double value() const noexcept {
    return counts_.mean([](double labels, double predicted, double both) { return 2 * both / (labels + predicted); });
  }
  [[nodiscard]] static constexpr char const* name() noexcept { return "f1"; }

 private:
  detail::ClassCounts<Sample, Label> counts_;
};

}}}  // namespace lockstep::train
