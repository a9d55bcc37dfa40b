// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/rank_of_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Mean of 1 / (rank of the label among all logits), where the largest logit has rank 1:
/// `MeanReciprocalRank{&Session::bought}`. Sequences count tokens. The first of equal logits counts as the larger.
/// Labels equal to `ignored` do not count. The value is 0 without samples.
template <class Sample = detail::NoSample, class Label = int>
class MeanReciprocalRank {
 public:
  /// @param label member of the samples
  /// @param ignored label that does not count
  explicit MeanReciprocalRank(Label Sample::*label, std::optional<Index> ignored = {})
      : label_(label), ignored_(ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit MeanReciprocalRank(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : MeanReciprocalRank(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens; DataError if a label
  /// is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class("MeanReciprocalRank", prediction, batch[label_], ignored_,
                       [&](auto const* logits, Index width, Index label) {
                         auto const before = detail::rank_of_label("MeanReciprocalRank", logits, width, label);
                         totals_[0] += 1 / static_cast<double>(before + 1);
                         totals_[1] += 1;
                       });
  }
  /// Returns the sum of the reciprocal ranks and their number.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the mean in [0, 1]; 0 without samples.
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "mean_reciprocal_rank"; }

 private:
  Label Sample::*label_;
  std::optional<Index> ignored_;
  std::array<double, 2> totals_{};  // reciprocal ranks, counted
};

}}}  // namespace lockstep::train
