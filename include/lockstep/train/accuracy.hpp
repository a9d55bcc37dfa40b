// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <span>

#include <lockstep/train/metric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// The share of samples whose largest logit is their label's: `Accuracy{&Article::label}`. Of equal logits the first
/// counts. No samples give 0.
template <class Sample, class Label>
class Accuracy {
 public:
  explicit Accuracy(Label Sample::*label) : label_(label) {}

  /// @shape prediction [rows, classes], a Variable on the host
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    auto const labels = batch[label_].values;
    for (Index row = 0; row < prediction.extent(0); ++row) {
      auto const* logits = prediction.value.data + row * prediction.extent(1);
      auto const best = std::max_element(logits, logits + prediction.extent(1)) - logits;
      totals_[0] += best == static_cast<Index>(labels(row)) ? 1 : 0;
      totals_[1] += 1;
    }
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "accuracy"; }

 private:
  Label Sample::*label_;
  std::array<double, 2> totals_{};  // right, all
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
