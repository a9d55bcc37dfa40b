// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/metrics/detail/class_counts.hpp>
#include <lockstep/train/metrics/detail/each_decision.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// F1 scores, precision and recall of labels that do not exclude each other, as scikit-learn's f1_score of matrices of
/// 0 and 1: `MultilabelF1{&Mail::tags, {"urgent", "invoice"}}`. The model predicts a logit for each label, as for
/// nn::binary_cross_entropy_with_logits. A label is predicted if its probability, the sigmoid of the logit, is above
/// its threshold, by default 0.5. With one name, it measures the class 1 of two classes.
///
/// "micro_f1" counts the labels of all rows together, "macro_f1" is the mean of the labels' scores. Each label has
/// "f1_", "precision_" and "recall_" with its name. A label that no row has, and that is never predicted, does not
/// count in the mean, as in F1, and its values are NaN; scikit-learn counts it as 0.
template <class Sample = detail::NoSample, class Labels = std::vector<float>>
class MultilabelF1 {
 public:
  /// @param labels member with a 0 or 1 for each label: a std::array, or a number if there is one label
  /// @param names of the labels, in the order of the logits
  /// @param thresholds probabilities, one for each label, such as those of F1Thresholds; empty: 0.5
  /// @throws ConfigError if there is no name, another number of thresholds than of names, or one outside [0, 1]
  MultilabelF1(Labels Sample::*labels, std::vector<std::string> names, std::vector<double> const& thresholds = {})
      : labels_(labels), names_(std::move(names)), logits_(names_.size()), totals_(names_.size()) {
    if (names_.empty()) throw ConfigError("MultilabelF1: there are no names; give one for each label");
    if (thresholds.empty()) return;
    if (thresholds.size() != names_.size())
      throw ConfigError("MultilabelF1: there are " + std::to_string(thresholds.size()) + " thresholds and " +
                        std::to_string(names_.size()) + " names; give one threshold for each label, or none");
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
      if (!(thresholds[i] >= 0 && thresholds[i] <= 1))
        throw ConfigError("MultilabelF1: the threshold of \"" + names_[i] + "\" is " + shortest(thresholds[i]) +
                          "; it is a probability in [0, 1]");
      logits_[i] = std::log(thresholds[i]) - std::log1p(-thresholds[i]);
    }
  }
  /// Rejects a metric without a member at compile time.
  explicit MultilabelF1(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : MultilabelF1(detail::required_member<Labels Sample::*>(), {""}) {}

  /// Counts one batch.
  /// @shape prediction [rows, labels], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError for another number of logits or labels than of names
  /// @throws DataError for a label other than 0 and 1, or a logit that is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_decision("MultilabelF1", prediction, batch[labels_], std::ssize(names_),
                          [&](double logit, bool is_positive, Index number) {
                            auto const i = static_cast<std::size_t>(number);
                            bool const is_predicted = logit > logits_[i];
                            if (is_positive) totals_.add_label(i);
                            if (is_predicted) totals_.add_prediction(i);
                            if (is_positive && is_predicted) totals_.add_both(i);
                          });
  }
  /// Returns three counts per label: rows that have it, rows that are predicted to have it, both.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_.totals(); }
  /// Calls each(name, value) for "micro_f1", "macro_f1" and the three values of each label.
  template <class Each>
  void values(Each const& each) const {
    auto const f1 = [](double labels, double predicted, double both) { return 2 * both / (labels + predicted); };
    each(std::string("micro_f1"), totals_.of_sums(f1));
    each(std::string("macro_f1"), totals_.mean(f1));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      each("f1_" + names_[i], totals_.of(i, f1));
      each("precision_" + names_[i],
           totals_.of(i, [](double, double predicted, double both) { return predicted == 0 ? 0 : both / predicted; }));
      each("recall_" + names_[i],
           totals_.of(i, [](double labels, double, double both) { return labels == 0 ? 0 : both / labels; }));
    }
  }
  /// Returns the name of the metric in messages.
  [[nodiscard]] static constexpr char const* name() noexcept { return "multilabel_f1"; }

 private:
  Labels Sample::*labels_;
  std::vector<std::string> names_;
  std::vector<double> logits_;  // of the thresholds
  detail::ClassTotals totals_;
};

}}}  // namespace lockstep::train
