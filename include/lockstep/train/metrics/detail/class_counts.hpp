// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/class_decisions.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Counts of each class: as label, as prediction, and as both.
class ClassTotals {
 public:
  explicit ClassTotals(std::size_t classes) : totals_(3 * classes) {}

  void add_label(std::size_t number) noexcept { ++totals_[3 * number]; }
  void add_prediction(std::size_t number) noexcept { ++totals_[3 * number + 1]; }
  void add_both(std::size_t number) noexcept { ++totals_[3 * number + 2]; }
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
  /// Returns of_class(label, predicted, both) of the sums over all classes, or 0 if they are 0.
  template <class Function>
  [[nodiscard]] double of_sums(Function const& of_class) const noexcept {
    double labels = 0, predicted = 0, both = 0;
    for (std::size_t at = 0; at < totals_.size(); at += 3) {
      labels += totals_[at];
      predicted += totals_[at + 1];
      both += totals_[at + 2];
    }
    return labels + predicted == 0 ? 0 : of_class(labels, predicted, both);
  }

 private:
  std::vector<double> totals_;
};

/// Counts of labels and predicted classes that exclude each other.
template <class Sample, class Label>
class ClassCounts : public ClassTotals {
 public:
  /// Takes the arguments of ClassDecisions.
  ClassCounts(char const* metric, Label Sample::*label, Index classes, std::optional<Index> ignored)
      : ClassTotals(static_cast<std::size_t>(std::max<Index>(classes, 0))),
        decisions_(metric, label, classes, ignored) {}

  /// @throws all that ClassDecisions::each throws
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    decisions_.each(prediction, batch, [this](Index label, Index predicted) {
      add_label(static_cast<std::size_t>(label));
      add_prediction(static_cast<std::size_t>(predicted));
      if (predicted == label) add_both(static_cast<std::size_t>(label));
    });
  }

 private:
  ClassDecisions<Sample, Label> decisions_;
};

}}}  // namespace lockstep::train::detail
