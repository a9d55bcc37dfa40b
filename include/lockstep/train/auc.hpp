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
#include <lockstep/train/detail/each_label.hpp>
#include <lockstep/train/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The area under the receiver operating characteristic: how often a sample with a label other than 0 has a larger
/// logit than one with the label 0, of all such pairs; equal ones count half. `Auc{&Click::clicked}`, of a model with
/// one logit for each sample, or for each token. Logits are compared as bfloat16, of which each number has a place in
/// the totals: they add up over devices and ranks, whatever the order. Without a pair it is 0.
/// @source Fawcett: An introduction to ROC analysis (2006)
template <class Sample, class Label>
class Auc {
 public:
  explicit Auc(Label Sample::*label) : label_(label) {}

  /// @shape prediction [rows, 1], a Variable on the host, or a Sequence of such tokens
  /// @throws ShapeError when the prediction is wider, or has not as many rows as there are labels
  /// @throws DataError when a logit is not a number
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_label("Auc", prediction, batch[label_], [&](auto const* logits, Index width, auto label) {
      expect<ShapeError>(width == 1, [&] {
        return "Auc: the model predicts " + std::to_string(width) + " numbers for each label; it takes one logit";
      });
      auto const logit = static_cast<float>(logits[0]);
      expect<DataError>(!std::isnan(logit), [] { return std::string("Auc: the model predicts a logit that is nan"); });
      ++totals_[2 * place_of(logit) + (label == decltype(label){} ? 0 : 1)];
    });
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const noexcept {
    double zeros = 0, others = 0, right = 0;
    for (std::size_t place = 0; place < places; ++place) {
      auto const zeros_here = totals_[2 * place], others_here = totals_[2 * place + 1];
      right += others_here * (zeros + zeros_here / 2);
      zeros += zeros_here, others += others_here;
    }
    return zeros > 0 && others > 0 ? right / (zeros * others) : 0;
  }
  [[nodiscard]] static constexpr char const* name() noexcept { return "auc"; }

 private:
  static constexpr std::size_t places = 65536;

  /// Numbers in their order: the negative ones come first, the largest of them last. 0 is -0.
  [[nodiscard]] static std::size_t place_of(float logit) noexcept {
    auto const bits = static_cast<unsigned>(bfloat16(logit + 0.0f).bits);
    return (bits & 0x8000u) != 0 ? 0xffffu - bits : 0x8000u + bits;
  }

  Label Sample::*label_;
  std::vector<double> totals_ = std::vector<double>(2 * places);  // for each number: labels of 0, others
};

}}}  // namespace lockstep::train
