// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Pairs of labels and predicted classes, for metrics that compare them.
template <class Sample, class Label>
class ClassDecisions {
 public:
  /// Stores the arguments. `metric` names the metric in messages and must outlive this object.
  /// @throws ConfigError if there are fewer than 2 classes
  ClassDecisions(char const* metric, Label Sample::*label, Index classes, std::optional<Index> ignored)
      : metric_(metric), label_(label), classes_(classes), ignored_(ignored) {
    if (classes < 2)
      throw ConfigError(std::string(metric) + ": there are " + std::to_string(classes) +
                        " classes; it takes at least 2");
  }

  [[nodiscard]] Index classes() const noexcept { return classes_; }

  /// Calls f(label, predicted) for each row, place or token whose label is not ignored. predicted is the largest logit,
  /// the first of equal ones; a single logit predicts 1 if it is above 0.
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens, or the prediction
  /// has another number of classes; DataError if a label is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch, class Function>
  void each(Prediction const& prediction, Batch const& batch, Function const& f) const {
    each_class(metric_, prediction, batch[label_], ignored_, [&](auto const* logits, Index width, Index label) {
      expect<ShapeError>(width == classes_ || (width == 1 && classes_ == 2), [&] {
        return std::string(metric_) + ": the model predicts " + std::to_string(width) +
               " numbers for each label, and there are " + std::to_string(classes_) + " classes";
      });
      expect<DataError>(label >= 0 && label < classes_, [&] {
        return std::string(metric_) + ": a label is " + std::to_string(label) + "; the classes are 0 to " +
               std::to_string(classes_ - 1);
      });
      f(label, width == 1 ? Index{logits[0] > 0} : std::max_element(logits, logits + width) - logits);
    });
  }

 private:
  char const* metric_;
  Label Sample::*label_;
  Index classes_;
  std::optional<Index> ignored_;
};

}}}  // namespace lockstep::train::detail
