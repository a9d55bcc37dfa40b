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
  static constexpr bool higher_is_better = [] {
    if constexpr (requires { AnyMetric::higher_is_better; })
      return static_cast<bool>(AnyMetric::higher_is_better);
    else
      return true;
  }();

  HeadMetric(std::string_view head, Part part, AnyMetric metric)
      : part_(std::move(part)),
        metric_(std::move(metric)),
        prefix_(std::string(head) + "_"),
        name_(prefix_ + metric_.name()) {}

  /// @throws all that the metric throws
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    metric_.add(std::invoke(part_, prediction), batch);
  }
  [[nodiscard]] std::span<double> totals() { return metric_.totals(); }
  [[nodiscard]] std::string samples() const requires detail::HasSamples<AnyMetric> { return metric_.samples(); }
  void add_samples(std::string_view bytes) requires detail::HasSamples<AnyMetric> { metric_.add_samples(bytes); }
  [[nodiscard]] double value() const requires detail::HasValue<AnyMetric> { return metric_.value(); }
  template <class Function>
  void values(Function const& each) const requires detail::HasValues<AnyMetric> {
    metric_.values([&](std::string const& name, double value) { each(prefix_ + name, value); });
  }
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Part part_;
  AnyMetric metric_;
  std::string prefix_, name_;
};

}}}  // namespace lockstep::train
