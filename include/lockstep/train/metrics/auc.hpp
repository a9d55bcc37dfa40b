// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Area under the receiver operating characteristic curve: `Auc{&Click::clicked}`. It counts pairs of a sample with a
/// label other than 0 and a sample with label 0. The value is the share of pairs in which the first has the larger
/// logit. Equal logits count half. The value is 0 without pairs.
/// The model predicts one logit per sample or token. Logits are rounded to bfloat16 and counted by value. The counts
/// add up over devices and ranks in any order.
/// @source Fawcett: An introduction to ROC analysis (2006)
template <class Sample, class Label>
class Auc {
 public:
  explicit Auc(Label Sample::*label) : label_(label) {}

  /// Counts one batch.
  /// @shape prediction [rows, 1], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError if the prediction is wider, or its rows and the labels differ in number
  /// @throws DataError if a logit is not a number
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_label("Auc", prediction, batch[label_], [&](auto const* logits, Index width, auto label) {
      expect<ShapeError>(width == 1, [&] {
        return "Auc: the model predicts " + std::to_string(width) + " numbers for each label; it takes one logit";
      });
      auto const logit = static_cast<float>(logits[0]);
      expect<DataError>(!std::isnan(logit), [] { return std::string("Auc: the model predicts a logit that is nan"); });
      ++totals_[2 * bin_of(logit) + (label == decltype(label){} ? 0 : 1)];
    });
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const noexcept {
    double zeros = 0, others = 0, right = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      auto const zeros_in_bin = totals_[2 * bin], others_in_bin = totals_[2 * bin + 1];
      right += others_in_bin * (zeros + zeros_in_bin / 2);
      zeros += zeros_in_bin;
      others += others_in_bin;
    }
    return zeros > 0 && others > 0 ? right / (zeros * others) : 0;
  }
  [[nodiscard]] static constexpr char const* name() noexcept { return "auc"; }

 private:
  static constexpr std::size_t bins = 65536;

  /// Returns the rank of a number among all bfloat16 values in ascending order. 0 and -0 share a rank.
  [[nodiscard]] static std::size_t bin_of(float logit) noexcept {
    auto const bits = static_cast<unsigned>(bfloat16(logit + 0.0f).bits);
    return (bits & 0x8000u) != 0 ? 0xffffu - bits : 0x8000u + bits;
  }

  Label Sample::*label_;
  std::vector<double> totals_ = std::vector<double>(2 * bins);  // for each bfloat16 value: labels of 0, other labels
};

}}}  // namespace lockstep::train
