// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The temperature by which logits are divided to calibrate probabilities (temperature scaling):
/// `Temperature{&Sample::label}`, with samples that training has not seen. It minimizes the mean -log(probability of
/// the label), as LogLoss, and does not change predicted classes. Above 1, the model is too certain. Pass it to
/// class_probabilities. Sequences and images count tokens or places. Labels equal to `ignored` do not count.
///
/// The value is between 1/16 and 16, and accurate to about 0.2 %. It is 1/16 if every sample's class is predicted, 16
/// if logits say nothing about labels, 1 without samples, and NaN if the largest logit of a sample is infinite. A logit
/// takes the time of 65 exponentials.
/// @source Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks (2017)
template <class Sample = detail::NoSample, class Label = int>
class Temperature {
 public:
  /// @param label member of the samples
  /// @param ignored label that does not count
  explicit Temperature(Label Sample::*label, std::optional<Index> ignored = {}) : label_(label), ignored_(ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit Temperature(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : Temperature(detail::required_member<Label Sample::*>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], or [rows, …, 1] for labels 0 and 1: a Variable on the host or a Sequence of
  /// such tokens, with one label for each row, place or slot
  /// @throws ShapeError if the number of labels differs from the number of rows, places or tokens
  /// @throws DataError if a label is not one of the classes, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_class("Temperature", prediction, batch[label_], ignored_,
                       [&](auto const* logits, Index width, Index label) {
                         auto const classes = std::max<Index>(width, 2);
                         expect<DataError>(label >= 0 && label < classes, [&] {
                           return "Temperature: a label is " + std::to_string(label) +
                                  "; the model predicts the classes 0 to " + std::to_string(classes - 1);
                         });
                         auto const at = [&](Index c) {
                           if (width == 1) return c == 1 ? static_cast<double>(static_cast<float>(logits[0])) : 0.0;
                           return static_cast<double>(static_cast<float>(logits[c]));
                         };
                         double largest = at(0);
                         for (Index c = 1; c < classes; ++c) largest = std::max(largest, at(c));
                         for (int k = 0; auto& slope : slopes_) {
                           double sum = 0, weighted = 0;
                           double const divisor = temperature(k++);
                           for (Index c = 0; c < classes; ++c) {
                             double const p = std::exp((at(c) - largest) / divisor);
                             sum += p;
                             if (p > 0) weighted += p * (at(c) - at(label));  // a logit may be -infinity
                           }
                           slope += weighted / sum;
                         }
                       });
  }
  /// Returns the derivative of the sum of losses by 1 / temperature, at each temperature of a grid.
  [[nodiscard]] std::span<double> totals() noexcept { return slopes_; }
  /// Returns the temperature; 1 without samples.
  [[nodiscard]] double value() const noexcept {
    // The loss is convex in 1 / temperature: slopes fall from the first to the last point of the grid.
    auto const first = std::find_if(slopes_.begin(), slopes_.end(), [](double slope) { return !(slope > 0); });
    if (std::all_of(slopes_.begin(), slopes_.end(), [](double slope) { return slope == 0; })) return 1;
    if (std::isnan(slopes_[0])) return slopes_[0];
    if (first == slopes_.begin()) return temperature(0);
    if (first == slopes_.end()) return temperature(points - 1);
    auto const k = static_cast<double>(first - slopes_.begin());
    return temperature(k - 1 + first[-1] / (first[-1] - *first));
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "temperature"; }

 private:
  static constexpr int points = 65;
  /// Returns the temperature at point k of the grid, from 1/16 to 16.
  [[nodiscard]] static double temperature(double k) noexcept { return std::exp2((k - 32) / 8); }

  Label Sample::*label_;
  std::optional<Index> ignored_;
  std::array<double, points> slopes_{};
};

}}}  // namespace lockstep::train
