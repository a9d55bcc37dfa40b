// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_target.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Number of outputs for a member of the sample that holds a row's, or a token's, targets.
template <class Target>
inline constexpr std::size_t outputs_of = 1;
template <class Value, std::size_t Count>
inline constexpr std::size_t outputs_of<std::array<Value, Count>> = Count;
template <class Value>
inline constexpr std::size_t outputs_of<std::vector<Value>> = outputs_of<Value>;

}  // namespace detail

/// Coefficient of determination: 1 - (sum of squared errors) / (sum of squared deviations of the targets from their
/// mean), averaged over the outputs as by scikit-learn: `R2Score{&Run::energy}`. 1 is a perfect prediction, 0 that of
/// the mean. An output whose targets are all equal counts 1 if it is predicted exactly, otherwise 0. Sequences and
/// images count tokens or places. Rows whose std::optional target is empty do not count. The value is NaN without
/// samples. `RegressionOptions::unit` has no effect. The deviations are a difference of sums, which loses digits if
/// targets have a mean of more than 10^6 times their deviation; from 10^7 times on, targets count as equal.
template <class Sample = detail::NoSample, class Target = float>
class R2Score {
  static constexpr std::size_t outputs = detail::outputs_of<Target>;

 public:
  /// @param target number, array or vector of numbers, or optional number
  explicit R2Score(Target Sample::*target, RegressionOptions options = {})
      : target_(target), options_(std::move(options)) {}
  /// Rejects a metric without a member at compile time.
  explicit R2Score(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : R2Score(detail::required_member<Target Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, outputs], a Variable on the host or a Sequence of such tokens, with as many targets;
  /// outputs is at most N for a target std::array<T, N> or std::vector<std::array<T, N>>, and 1 for others
  /// @throws ShapeError if the number of targets differs, or there are more outputs or no such output
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_target("R2Score", prediction, batch[target_], options_.output,
                        [&](double x, double target, Index output) {
                          expect<ShapeError>(output < Index{outputs}, [&] {
                            return "R2Score: the model predicts output " + std::to_string(output) +
                                   ", and the target has outputs 0 to " + std::to_string(outputs - 1);
                          });
                          auto* const sums = &totals_[each * static_cast<std::size_t>(output)];
                          sums[0] += 1;
                          add_to(sums + 1, target);
                          add_to(sums + 3, target * target);
                          sums[5] += (x - target) * (x - target);
                        });
  }
  /// Returns for each output: count, sum of targets and its rounding errors, sum of their squares and its rounding
  /// errors, sum of squared errors.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the score, at most 1; negative if the mean is the better prediction; NaN without samples.
  [[nodiscard]] double value() const noexcept {
    double sum = 0, seen = 0;
    for (std::size_t output = 0; output < outputs; ++output) {
      auto const score = score_of(output);
      if (score) sum += *score, ++seen;
    }
    return seen == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / seen;
  }
  /// Returns RegressionOptions::name, or "r2".
  [[nodiscard]] char const* name() const noexcept { return options_.name.empty() ? "r2" : options_.name.c_str(); }

 private:
  static constexpr std::size_t each = 6;  // totals of an output

  /// Adds a number to sum[0], and the error of the rounded addition to sum[1]: otherwise equal targets would have
  /// deviations that grow with their number.   @source Knuth, The Art of Computer Programming, volume 2, 4.2.2 B
  static void add_to(double* sum, double x) noexcept {
    double const before = std::exchange(sum[0], sum[0] + x), added = sum[0] - before;
    sum[1] += (before - (sum[0] - added)) + (x - added);
  }
  /// Returns the score of an output, or nothing without samples.
  [[nodiscard]] std::optional<double> score_of(std::size_t output) const noexcept {
    auto const* const sums = &totals_[each * output];
    if (sums[0] == 0) return std::nullopt;
    double const sum = sums[1] + sums[2], squares = sums[3] + sums[4], deviations = squares - sum * sum / sums[0];
    // Six roundings here, and three for each of up to 20 additions of totals of devices and ranks.
    constexpr double rounding = 33 * std::numeric_limits<double>::epsilon();
    if (!(deviations > rounding * squares)) return sums[5] == 0 ? 1 : 0;
    return 1 - sums[5] / deviations;
  }

  Target Sample::*target_;
  RegressionOptions options_;
  std::array<double, each * outputs> totals_{};
};

}}}  // namespace lockstep::train
