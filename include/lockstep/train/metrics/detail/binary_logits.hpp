// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the numbers in ascending order.
[[nodiscard]] std::vector<float> sorted(std::vector<float> numbers);

/// Logits of samples with label 0 and of samples with another label, for metrics of their order. Keeps all logits, 4
/// bytes each. The totals count them by their value rounded to bfloat16, for programs that pass on no `samples()`.
class BinaryLogits {
 public:
  /// Adds the logits of a batch.
  /// @throws ShapeError, naming `metric`, if the prediction is wider than one logit, or its rows and the labels differ
  /// in number   @throws DataError, naming `metric`, if a logit is not a number
  template <class Prediction, class Column>
  void add(char const* metric, Prediction const& prediction, Column const& labels) {
    each_label(metric, prediction, labels, {}, [&](auto const* logits, Index width, auto label) {
      expect<ShapeError>(width == 1, [&] {
        return std::string(metric) + ": the model predicts " + std::to_string(width) +
               " numbers for each label; it takes one logit";
      });
      auto const logit = static_cast<float>(logits[0]);
      bool const other = label != decltype(label){};
      ++totals_[2 * bin_of(logit) + (other ? 1 : 0)];
      logits_[other ? 1 : 0].push_back(logit);
    });
  }
  [[nodiscard]] std::span<double> totals() noexcept { return {totals_.data(), totals_.size()}; }
  /// Returns the logits as bytes, for `add_samples` of another device or rank.
  [[nodiscard]] std::string samples() const;
  /// Adds the logits of another device or rank, which do not count in the totals: these add up apart.
  void add_samples(std::string_view bytes);

  /// Returns the number of samples with label 0, and with another label.
  [[nodiscard]] std::array<double, 2> counts() const noexcept;
  /// Calls f(labels of 0, other labels) with the numbers of samples of each group of equal logits, in ascending order
  /// of the logits. Logits are rounded to bfloat16 if the totals count more of them than this object holds.
  template <class Function>
  void each_group(Function const& f) const {
    auto const counted = counts();
    if (counted[0] + counted[1] != static_cast<double>(logits_[0].size() + logits_[1].size())) {
      for (std::size_t bin = 0; bin < bins; ++bin)
        if (totals_[2 * bin] + totals_[2 * bin + 1] > 0) f(totals_[2 * bin], totals_[2 * bin + 1]);
      return;
    }
    auto const zeros = sorted(logits_[0]), others = sorted(logits_[1]);
    std::size_t zero = 0, other = 0;
    while (zero < zeros.size() || other < others.size()) {
      bool const from_zeros = other == others.size() || (zero < zeros.size() && zeros[zero] <= others[other]);
      float const logit = from_zeros ? zeros[zero] : others[other];
      auto const first_zero = zero, first_other = other;
      while (zero < zeros.size() && zeros[zero] == logit) ++zero;
      while (other < others.size() && others[other] == logit) ++other;
      f(static_cast<double>(zero - first_zero), static_cast<double>(other - first_other));
    }
  }

 private:
  static constexpr std::size_t bins = 65536;

  /// Returns the rank of a number among all bfloat16 values in ascending order. 0 and -0 share a rank.
  [[nodiscard]] static std::size_t bin_of(float logit) noexcept {
    auto const bits = static_cast<unsigned>(bfloat16(logit + 0.0f).bits);
    return (bits & 0x8000u) != 0 ? 0xffffu - bits : 0x8000u + bits;
  }

  std::vector<double> totals_ = std::vector<double>(2 * bins);  // for each bfloat16 value: labels of 0, other labels
  std::array<std::vector<float>, 2> logits_;                    // of labels of 0, of other labels
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/detail/binary_logits.ipp>
#endif
