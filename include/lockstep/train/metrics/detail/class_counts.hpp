// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/class_decisions.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Counts of each class: as label, as prediction, and as both.
template <class Sample, class Label>
class ClassCounts {
 public:
  /// Takes the arguments of ClassDecisions.
  ClassCounts(char const* metric, Label Sample::*label, Index classes, std::optional<Index> ignored)
      : decisions_(metric, label, classes, ignored), totals_(3 * static_cast<std::size_t>(classes)) {}

  /// @throws all that ClassDecisions::each throws
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    decisions_.each(prediction, batch, [this](Index label, Index predicted) {
      ++totals_[static_cast<std::size_t>(3 * label)];
      ++totals_[static_cast<std::size_t>(3 * predicted + 1)];
      if (predicted == label) ++totals_[static_cast<std::size_t>(3 * label + 2)];
    });
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns of_class(label, predicted, both) of a class, or NaN if it is neither a label nor predicted.
  template <class Function>
  [[nodiscard]] double of(std::size_t number, Function const& of_class) const noexcept {
    auto const* const counts = &totals_[3 * number];
    return counts[0] + counts[1] == 0 ? std::numeric_limits<double>::quiet_NaN()
                                      : of_class(counts[0], counts[1], counts[2]);
  }
  /// Returns the mean of of_class(label, predicted, both) over classes that are a label or predicted, or 0 without such
  /// classes.
  template <class Function>
  [[nodiscard]] double mean(Function const& of_class) const noexcept {
    double sum = 0, count = 0;
    for (std::size_t at = 0; at < totals_.size(); at += 3) {
      if (totals_[at] + totals_[at + 1] == 0) continue;
      sum += of_class(totals_[at], totals_[at + 1], totals_[at + 2]);
      ++count;
    }
    return count == 0 ? 0 : sum / count;
  }

 private:
  ClassDecisions<Sample, Label> decisions_;
  std::vector<double> totals_;
};

}}}  // namespace lockstep::train::detail
