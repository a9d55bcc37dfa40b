// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/rank_of_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Share of samples whose label is among the k largest logits: `TopKAccuracy{&Photo::kind, 5}` reports it as
/// "top_5_accuracy". Sequences and images count tokens or places. The first of equal logits counts as the larger. With
/// k = 1 and at least 2 classes it equals Accuracy. Labels equal to `ignored` do not count. The value is 0 without
/// samples.
template <class Sample = detail::NoSample, class Label = int>
class TopKAccuracy {
 public:
  /// @throws ConfigError if k is not positive
  TopKAccuracy(Label Sample::*label, Index k, std::optional<Index> ignored = {})
      : label_(label), k_(k), ignored_(ignored), name_("top_" + std::to_string(k) + "_accuracy") {
    if (k < 1) throw ConfigError("TopKAccuracy: k is " + std::to_string(k) + "; it must be at least 1");
  }
  /// Rejects a metric without a member at compile time.
  explicit TopKAccuracy(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : TopKAccuracy(detail::required_member<Label Sample::*>(), 2) {}
  /// Rejects a metric without k at compile time.
  explicit TopKAccuracy(Label Sample::*label) : TopKAccuracy(label, detail::required_number<Label>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens; DataError if a label
  /// is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class("TopKAccuracy", prediction, batch[label_], ignored_,
                       [&](auto const* logits, Index width, Index label) {
                         auto const before = detail::rank_of_label("TopKAccuracy", logits, width, label);
                         totals_[0] += before < k_ ? 1 : 0;
                         totals_[1] += 1;
                       });
  }
  /// Returns the number of labels among the k largest logits, and of counted labels.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the share in [0, 1].
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  /// Returns "top_K_accuracy".
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Label Sample::*label_;
  Index k_;
  std::optional<Index> ignored_;
  std::string name_;
  std::array<double, 2> totals_{};  // correct, counted
};

}}}  // namespace lockstep::train
