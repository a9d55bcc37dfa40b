// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_target.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Root of the mean of (prediction - target)^2 over all outputs of all samples: `RootMeanSquaredError{&Run::energy}`.
/// Sequences and images count tokens or places. Rows whose std::optional target is empty do not count. Smaller values
/// are better. The value is NaN without samples, or if a prediction is NaN.
template <class Sample = detail::NoSample, class Target = float>
class RootMeanSquaredError {
 public:
  static constexpr bool higher_is_better = false;  ///< for best_by

  /// @param target number, array or vector of numbers, or optional number
  explicit RootMeanSquaredError(Target Sample::*target, RegressionOptions options = {})
      : target_(target), options_(std::move(options)) {}
  /// Rejects a metric without a member at compile time.
  explicit RootMeanSquaredError(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : RootMeanSquaredError(detail::required_member<Target Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, outputs], a Variable on the host or a Sequence of such tokens, with as many targets
  /// @throws ShapeError if the number of targets differs, or there is no such output
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_target("RootMeanSquaredError", prediction, batch[target_], options_.output,
                        [&](double x, double target, Index) {
                          totals_[0] += (x - target) * (x - target);
                          totals_[1] += 1;
                        });
  }
  /// Returns the sum of the squared errors and their number.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the root times RegressionOptions::unit; NaN without samples.
  [[nodiscard]] double value() const noexcept {
    return totals_[1] == 0 ? std::numeric_limits<double>::quiet_NaN()
                           : options_.unit * std::sqrt(totals_[0] / totals_[1]);
  }
  /// Returns RegressionOptions::name, or "root_mean_squared_error".
  [[nodiscard]] char const* name() const noexcept {
    return options_.name.empty() ? "root_mean_squared_error" : options_.name.c_str();
  }

 private:
  Target Sample::*target_;
  RegressionOptions options_;
  std::array<double, 2> totals_{};  // sum of squared errors, counted
};

}}}  // namespace lockstep::train
