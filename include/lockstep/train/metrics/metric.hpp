// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {
struct ValueCallback {
  void operator()(std::string const&, double) const {}
};
template <class AnyMetric>
concept HasValue = requires(AnyMetric const& metric) {
  { metric.value() } -> std::convertible_to<double>;
};
template <class AnyMetric>
concept HasValues = requires(AnyMetric const& metric) {
  metric.values(ValueCallback{});
};

template <class AnyMetric>
concept HasSamples = requires(AnyMetric& metric, AnyMetric const& constant, std::string_view bytes) {
  { constant.samples() } -> std::convertible_to<std::string>;
  metric.add_samples(bytes);
};

/// Calls f(name, value) for each value of a metric.
template <class AnyMetric, class Function>
void each_value(AnyMetric const& metric, Function const& f) {
  if constexpr (HasValues<AnyMetric>)
    metric.values(f);
  else
    f(std::string(metric.name()), static_cast<double>(metric.value()));
}
}  // namespace detail

/// Quantity that an evaluation measures. `add(prediction, batch)` counts the model's prediction for a batch; it is a
/// template, so the concept does not check it. `totals()` returns a fixed number of totals that add up over batches and
/// ranks. `value()` computes the result from them.
/// A metric of several values has `values(each) const` instead. It calls each(name, value) with the same names each
/// time, also before the first `add`. A metric whose value needs all samples also has `samples() const`, which returns
/// them as a string of bytes, and `add_samples(bytes)`, which adds those of another device or rank; the samples follow
/// the totals, which are already summed. A metric is copied once per device. Larger values are better, unless the
/// metric has `static constexpr bool higher_is_better = false`.
template <class AnyMetric>
concept Metric = std::copy_constructible<AnyMetric> &&
    (detail::HasValue<AnyMetric> || detail::HasValues<AnyMetric>)&&requires(AnyMetric& metric,
                                                                            AnyMetric const& constant) {
  { metric.totals() } -> std::convertible_to<std::span<double>>;
  { constant.name() } -> std::convertible_to<char const*>;
};

}}}  // namespace lockstep::train
