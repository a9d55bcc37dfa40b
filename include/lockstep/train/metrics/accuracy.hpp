// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Share of samples whose largest logit belongs to their label: `Accuracy{&Article::label}`. Models that predict
/// sequences or images count tokens or places instead of samples.
/// The first of equal logits wins. A single logit, as of nn::binary_cross_entropy_with_logits, predicts 1 if it is
/// above 0. Labels equal to `ignored` do not count, as with CrossEntropyOptions::ignored. The value is 0 without
/// samples.
template <class Sample = detail::NoSample, class Label = int>
class Accuracy {
 public:
  /// @param ignored label whose rows do not count
  explicit Accuracy(Label Sample::*label, std::optional<Index> ignored = {}) : label_(label), ignored_(ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit Accuracy(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : Accuracy(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens
  /// @throws DataError if a label is not a whole number, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class(
        "Accuracy", prediction, batch[label_], ignored_, [&](auto const* logits, Index width, Index label) {
          Index const best = width == 1 ? Index{logits[0] > 0} : std::max_element(logits, logits + width) - logits;
          totals_[0] += best == label ? 1 : 0;
          totals_[1] += 1;
        });
  }
  /// Returns the number of correct and of counted labels.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the share in [0, 1].
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "accuracy"; }

 private:
  Label Sample::*label_;
  std::optional<Index> ignored_;
  std::array<double, 2> totals_{};  // correct, counted
};

}}}  // namespace lockstep::train
