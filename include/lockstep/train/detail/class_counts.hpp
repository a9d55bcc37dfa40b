// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/each_label.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// Of each class: how often it was the label, was predicted, and both at once.
template <class Sample, class Label>
class ClassCounts {
 public:
  /// `metric` names it in messages, and outlives it.   @throws ConfigError when there are fewer than two classes
  ClassCounts(char const* metric, Label Sample::*label, Index classes, std::optional<Index> ignored)
      : metric_(metric), label_(label), classes_(classes), ignored_(ignored) {
    if (classes < 2)
      throw ConfigError(std::string(metric) + ": there are " + std::to_string(classes) +
                        " classes; it takes at least 2");
    totals_.resize(3 * static_cast<std::size_t>(classes));
  }

  /// @throws ShapeError when there are more or fewer labels than rows, places or tokens, or the prediction is of
  /// another number of classes; DataError when a label is none of them
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    each_label(metric_, prediction, batch[label_], [&](auto const* logits, Index width, auto wanted) {
      expect<ShapeError>(width == classes_ || (width == 1 && classes_ == 2), [&] {
        return std::string(metric_) + ": the model predicts " + std::to_string(width) +
               " numbers for each label, and there are " + std::to_string(classes_) + " classes";
      });
      auto const label = static_cast<Index>(wanted);
      if (label == ignored_) return;
      expect<DataError>(label >= 0 && label < classes_, [&] {
        return std::string(metric_) + ": a label is " + std::to_string(label) + "; the classes are 0 to " +
               std::to_string(classes_ - 1);
      });
      Index const best = width == 1 ? Index{logits[0] > 0} : std::max_element(logits, logits + width) - logits;
      ++totals_[static_cast<std::size_t>(3 * label)];
      ++totals_[static_cast<std::size_t>(3 * best + 1)];
      if (best == label) ++totals_[static_cast<std::size_t>(3 * label + 2)];
    });
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// The mean of of_class(label, predicted, both) over the classes that came as either; 0 where none did.
  template <class F>
  [[nodiscard]] double mean(F const& of_class) const noexcept {
    double sum = 0, count = 0;
    for (std::size_t at = 0; at < totals_.size(); at += 3) {
      if (totals_[at] + totals_[at + 1] == 0) continue;
      sum += of_class(totals_[at], totals_[at + 1], totals_[at + 2]);
      ++count;
    }
    return count == 0 ? 0 : sum / count;
  }

 private:
  char const* metric_;
  Label Sample::*label_;
  Index classes_;
  std::optional<Index> ignored_;
  std::vector<double> totals_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
