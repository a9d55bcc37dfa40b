// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
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

/// Normalized discounted cumulative gain of one relevant class per sample: `Ndcg{&Session::bought, 10}` reports it as
/// "ndcg_10". The mean of 1 / log2(1 + rank of the label among all logits), where the largest logit has rank 1, and of
/// 0 for ranks above k. Sequences count tokens. The first of equal logits counts as the larger. Labels equal to
/// `ignored` do not count. The value is 0 without samples.
template <class Sample = detail::NoSample, class Label = int>
class Ndcg {
 public:
  /// @throws ConfigError if k is not positive
  Ndcg(Label Sample::*label, Index k, std::optional<Index> ignored = {})
      : label_(label), k_(k), ignored_(ignored), name_("ndcg_" + std::to_string(k)) {
    if (k < 1) throw ConfigError("Ndcg: k is " + std::to_string(k) + "; it must be at least 1");
  }
  /// Rejects a metric without a member at compile time.
  explicit Ndcg(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : Ndcg(detail::required_member<Label Sample::*>(), 2) {}
  /// Rejects a metric without k at compile time.
  explicit Ndcg(Label Sample::*label) : Ndcg(label, detail::required_number<Label>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens; DataError if a label
  /// is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class("Ndcg", prediction, batch[label_], ignored_, [&](auto const* logits, Index width, Index label) {
      auto const before = detail::rank_of_label("Ndcg", logits, width, label);
      if (before < k_) totals_[0] += 1 / std::log2(static_cast<double>(before + 2));
      totals_[1] += 1;
    });
  }
  /// Returns the sum of the gains and the number of counted labels.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the mean in [0, 1]; 0 without samples.
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  /// Returns "ndcg_" and k.
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Label Sample::*label_;
  Index k_;
  std::optional<Index> ignored_;
  std::string name_;
  std::array<double, 2> totals_{};  // gains, counted
};

}}}  // namespace lockstep::train
