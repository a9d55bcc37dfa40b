// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/train/metrics/loss_part.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {
/// Replaces the type of a metric by double. nvcc does not expand a pack in an alias that is always double.
template <class AnyMetric>
struct ValueOf {
  using type = double;
};
}  // namespace detail

/// Function of the values of several metrics, for `best_by` of a model with several tasks:
/// `CombinedMetric{"score", [](double accuracy, double r2) { return accuracy + r2; }, Accuracy{&Photo::label},
/// R2Score{&Photo::height}}` is reported as "score". Larger is better: subtract errors. The metrics themselves are not
/// reported; pass those to the Evaluation, too.
template <class Function, Metric... Metrics>
class CombinedMetric {
  static_assert((detail::HasValue<Metrics> && ...),
                "Lockstep: a CombinedMetric takes metrics with one value(), and one of these has several");
  static_assert(!(std::is_same_v<Metrics, LossPart> || ...),
                "Lockstep: a CombinedMetric takes metrics of predictions, and a LossPart is none");
  static_assert(std::is_invocable_r_v<double, Function const&, typename detail::ValueOf<Metrics>::type...>,
                "Lockstep: the function of a CombinedMetric takes one double for each metric and returns a number");

 public:
  /// @param name name in reports
  /// @param function returns the value; its arguments are the values of the metrics, in their order
  CombinedMetric(std::string name, Function function, Metrics... metrics)
      : name_(std::move(name)), function_(std::move(function)), metrics_(std::move(metrics)...) {}

  /// Counts one batch by each metric.   @throws all that the metrics throw
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    if (std::exchange(shared_, false)) write_totals(metrics_);
    std::apply([&](auto&... metric) { (metric.add(prediction, batch), ...); }, metrics_);
  }
  /// Returns the totals of all metrics. Valid until the next `add`.
  [[nodiscard]] std::span<double> totals() {
    if (!std::exchange(shared_, true)) {
      totals_.clear();
      each_totals(metrics_, [&](std::span<double> all) { totals_.insert(totals_.end(), all.begin(), all.end()); });
    }
    return totals_;
  }
  /// Returns the samples of all metrics that keep some.
  [[nodiscard]] std::string samples() const requires(detail::HasSamples<Metrics> || ...) {
    std::string all;
    auto const append = [&]<class AnyMetric>(AnyMetric const& metric) {
      if constexpr (detail::HasSamples<AnyMetric>) {
        std::string const bytes = metric.samples();
        std::uint64_t const size = bytes.size();
        all.append(reinterpret_cast<char const*>(&size), sizeof size).append(bytes);
      }
    };
    std::apply([&](auto const&... metric) { (append(metric), ...); }, metrics_);
    return all;
  }
  /// Adds the samples of another device or rank to the metrics.
  void add_samples(std::string_view bytes) requires(detail::HasSamples<Metrics> || ...) {
    auto const add_to = [&]<class AnyMetric>(AnyMetric& metric) {
      if constexpr (detail::HasSamples<AnyMetric>) {
        std::uint64_t size = 0;
        std::memcpy(&size, bytes.data(), sizeof size);
        metric.add_samples(bytes.substr(sizeof size, size));
        bytes.remove_prefix(sizeof size + size);
      }
    };
    std::apply([&](auto&... metric) { (add_to(metric), ...); }, metrics_);
  }
  /// Returns the function's result.
  [[nodiscard]] double value() const {
    auto metrics = metrics_;
    if (shared_) write_totals(metrics);
    return std::apply(
        [&](auto const&... metric) { return static_cast<double>(function_(static_cast<double>(metric.value())...)); },
        metrics);
  }
  /// Returns the name in reports.
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  template <class Each>
  static void each_totals(std::tuple<Metrics...>& metrics, Each const& each) {
    std::apply([&](auto&... metric) { (each(std::span<double>(metric.totals())), ...); }, metrics);
  }
  /// Writes the totals that were handed out, and that others may have changed, into the metrics.
  void write_totals(std::tuple<Metrics...>& metrics) const {
    auto next = totals_.begin();
    each_totals(metrics, [&](std::span<double> all) {
      std::copy_n(next, all.size(), all.begin());
      next += static_cast<std::ptrdiff_t>(all.size());
    });
  }

  std::string name_;
  Function function_;
  std::tuple<Metrics...> metrics_;
  std::vector<double> totals_;
  bool shared_ = false;  ///< whether totals_ counts, in place of the metrics' own totals
};

}}}  // namespace lockstep::train
