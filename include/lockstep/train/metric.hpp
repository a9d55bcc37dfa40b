// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>
#include <string>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {
struct TakesValue {
  void operator()(std::string const&, double) const {}
};
template <class M>
concept HasValue = requires(M const& metric) {
  { metric.value() } -> std::convertible_to<double>;
};
template <class M>
concept HasValues = requires(M const& metric) {
  metric.values(TakesValue{});
};

/// f(name, value) for each value of a metric.
template <class M, class F>
void each_value(M const& metric, F const& f) {
  if constexpr (HasValues<M>)
    metric.values(f);
  else
    f(std::string(metric.name()), static_cast<double>(metric.value()));
}
}  // namespace detail

/// Something that an evaluation counts: `add(prediction, batch)` takes what the model predicted for a batch (it is a
/// template, so it cannot be asked for here), `totals()` are numbers that add up over batches and ranks, always as
/// many, `value()` is what they come to. A metric of several values has `values(each) const` instead, which calls
/// each(name, value) for them, always the same names, also before anything was added. Copied once per device. Of two
/// values the larger is the better one, unless the metric is an error or such and says
/// `static constexpr bool higher_is_better = false`.
template <class M>
concept Metric = std::copy_constructible<M> &&
    (detail::HasValue<M> || detail::HasValues<M>)&&requires(M& metric, M const& constant) {
  { metric.totals() } -> std::convertible_to<std::span<double>>;
  { constant.name() } -> std::convertible_to<char const*>;
};

}}}  // namespace lockstep::train
