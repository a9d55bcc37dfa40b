// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Metric of one head of a model that predicts a struct; part(prediction) returns that head.
/// `HeadMetric{"weather", [](auto const& heads) { return heads.weather; }, Accuracy{&Photo::weather}}` is reported as
/// "weather_accuracy".
template <class Part, Metric AnyMetric>
class HeadMetric {
 public:
  /// That of the metric, for best_by.
  static constexpr bool higher_is_better = [] {
    if constexpr (requires { AnyMetric::higher_is_better; })
      return static_cast<bool>(AnyMetric::higher_is_better);
    else
      return true;
  }();

  /// @param head name of the head, before "_" and the metric's name
  /// @param part function of the prediction that returns the head
  HeadMetric(std::string_view head, Part part, AnyMetric metric)
      : part_(std::move(part)),
        metric_(std::move(metric)),
        prefix_(std::string(head) + "_"),
        name_(prefix_ + metric_.name()) {}

  /// Counts one batch by the metric.   @throws all that the metric throws
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    metric_.add(std::invoke(part_, prediction), batch);
  }
  /// Returns the metric's totals.
  [[nodiscard]] std::span<double> totals() { return metric_.totals(); }
  /// Returns the metric's samples.
  [[nodiscard]] std::string samples() const requires detail::HasSamples<AnyMetric> { return metric_.samples(); }
  /// Adds samples of another device or rank to the metric.
  void add_samples(std::string_view bytes) requires detail::HasSamples<AnyMetric> { metric_.add_samples(bytes); }
  /// Returns the metric's value.
  [[nodiscard]] double value() const requires detail::HasValue<AnyMetric> { return metric_.value(); }
  /// Calls each(name, value) for the metric's values, with the head in the names.
  template <class Function>
  void values(Function const& each) const requires detail::HasValues<AnyMetric> {
    metric_.values([&](std::string const& name, double value) { each(prefix_ + name, value); });
  }
  /// Returns "HEAD_METRIC".
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Part part_;
  AnyMetric metric_;
  std::string prefix_, name_;
};

}}}  // namespace lockstep::train
