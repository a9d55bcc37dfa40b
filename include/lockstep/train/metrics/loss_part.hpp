// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Mean of a part of the model's loss that nn::named_loss names: its sum, with its factor, over its own weight. Smaller
/// is better. The value is NaN if all labels of the part are missing.
class LossPart {
 public:
  static constexpr bool higher_is_better = false;  ///< for best_by

  /// @param name the name that nn::named_loss gives; also the name in reports
  explicit LossPart(std::string name) : name_(std::move(name)) {}

  /// Adds the part's loss of one batch. An evaluation calls it.
  void add_loss(nn::Loss<HostSpace> const& loss) noexcept {
    totals_[0] += loss.sum;
    totals_[1] += loss.weight;
  }
  /// Returns the sum and the weight.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the mean; NaN without weight.
  [[nodiscard]] double value() const noexcept {
    return totals_[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : totals_[0] / totals_[1];
  }
  /// Returns the name of the part.
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  std::string name_;
  std::array<double, 2> totals_{};  // sum, weight
};

}}}  // namespace lockstep::train
