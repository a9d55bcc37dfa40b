// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/train/metrics/metric.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Whether a metric has no higher_is_better, or a readable one.
template <class AnyMetric>
inline constexpr bool has_valid_direction = true;
template <class AnyMetric>
requires requires { AnyMetric::higher_is_better; }
inline constexpr bool has_valid_direction<AnyMetric> = requires {
  typename std::bool_constant<AnyMetric::higher_is_better>;
};

/// Whether a metric has neither samples() nor add_samples(bytes), or both as an evaluation calls them.
template <class AnyMetric>
inline constexpr bool has_valid_samples =
    HasSamples<AnyMetric> ||
    !(
        requires(AnyMetric & metric) { metric.samples(); } || requires { &AnyMetric::add_samples; });

/// Replaces an argument of Evaluation that is no metric, so that the message is the only error.
struct NoMetric {
  template <class Argument>
  requires(!std::is_same_v<Argument, NoMetric>) NoMetric(Argument const&) {
    static_assert(
        std::is_same_v<Argument, NoMetric>,
        "Lockstep: an argument of Evaluation is no metric: it lacks totals() -> std::span<double>, value() -> "
        "double (or values(each)) or name() -> char const*; a function is no metric; see "
        "docs/reference/trainer.md");
  }
  template <class Prediction, class Batch>
  void add(Prediction const&, Batch const&) {}
  [[nodiscard]] std::span<double> totals() { return {}; }
  [[nodiscard]] double value() const { return 0; }
  [[nodiscard]] char const* name() const { return ""; }
};
template <class AnyMetric>
struct MetricOrNone {
  using type = NoMetric;
};
template <Metric AnyMetric>
struct MetricOrNone<AnyMetric> {
  using type = AnyMetric;
};

}  // namespace detail

template <class First, class... Others>
struct Evaluations;

/// Data and metrics of an evaluation: `Evaluation{loader, Accuracy{&Article::label}}`. Does not own the loader, which
/// must outlive it.
template <class Loader, class... Metrics>
struct Evaluation {
  static constexpr bool loads = detail::LoadsBatches<Loader>;  ///< whether `loader` is a DataLoader
  static_assert(
      loads,
      "Lockstep: an Evaluation's first argument is not a non-const data::DataLoader; put a dataset into "
      "one: data::DataLoader{dataset, sampler, collate, {.batch_size = 32}}; see docs/reference/data-loader.md");
  static_assert((Metric<Metrics> && ...),
                "Lockstep: an argument of Evaluation is no metric: it lacks totals() -> std::span<double>, value() -> "
                "double (or values(each)) or name() -> char const*; see docs/reference/trainer.md");
  static_assert((detail::has_valid_direction<Metrics> && ...),
                "Lockstep: a metric's higher_is_better is `static constexpr bool higher_is_better = false` (or true), "
                "public; see docs/reference/trainer.md");
  static_assert((detail::has_valid_samples<Metrics> && ...),
                "Lockstep: a metric that needs all samples has both samples() const -> std::string, and "
                "add_samples(std::string_view); see docs/reference/trainer.md");

  Loader& loader;                  ///< delivers the samples of the evaluation
  std::tuple<Metrics...> metrics;  ///< copied for each device

  /// @param m any number of metrics with different names
  explicit Evaluation(Loader& evaluation_loader, Metrics... m) : loader(evaluation_loader), metrics(std::move(m)...) {}

  /// Returns this evaluation with a second one, whose loss and metrics are reported as further metrics with the prefix
  /// "NAME_".
  /// `Evaluation{validation, Accuracy{&Article::label}}.with("test", Evaluation{test, Accuracy{&Article::label}})`
  /// reports "accuracy", "test_loss" and "test_accuracy".
  template <class OtherLoader, class... OtherMetrics>
  [[nodiscard]] auto with(std::string name, Evaluation<OtherLoader, OtherMetrics...> const& other) const {
    return Evaluations<Evaluation>{*this, {}}.with(std::move(name), other);
  }
};
/// Takes the types of the loader and of the metrics from the arguments. Rejects an argument that is no metric.
template <class Loader, class... Metrics>
Evaluation(Loader&, Metrics...) -> Evaluation<Loader, typename detail::MetricOrNone<Metrics>::type...>;
/// Takes the types as above, so that the message about a temporary or a const loader is the only error.
template <class Other, class... Metrics>
Evaluation(Other const&, Metrics...) -> Evaluation<Other const, typename detail::MetricOrNone<Metrics>::type...>;

/// Several evaluations of one fit, made in order: the first one, and named ones that `with` adds.
template <class First, class... Others>
struct Evaluations {
  static constexpr bool loads = First::loads && (Others::loads && ...);  ///< whether all have a DataLoader

  First first;                                           ///< reported without a prefix
  std::tuple<std::pair<std::string, Others>...> others;  ///< with the prefix "NAME_"

  /// Returns these evaluations with a further one, as Evaluation::with does.
  template <class Loader, class... Metrics>
  [[nodiscard]] auto with(std::string name, Evaluation<Loader, Metrics...> const& other) const {
    return Evaluations<First, Others..., Evaluation<Loader, Metrics...>>{
        first, std::tuple_cat(others, std::make_tuple(std::pair(std::move(name), other)))};
  }
};

/// Makes a fit train without evaluations.
struct NoEvaluation {
  static constexpr bool loads = true;  ///< needs no DataLoader
};

/// Whether a type is an evaluation of `fit`: an Evaluation, Evaluations or NoEvaluation.
template <class Value>
inline constexpr bool is_evaluation = std::is_same_v<Value, NoEvaluation>;
/// True for an Evaluation.
template <class Loader, class... Metrics>
inline constexpr bool is_evaluation<Evaluation<Loader, Metrics...>> = true;
/// True for Evaluations.
template <class First, class... Others>
inline constexpr bool is_evaluation<Evaluations<First, Others...>> = true;

namespace detail {

/// Calls f(prefix, evaluation) for each evaluation of a fit. The names of its numbers begin with the prefix.
template <class Function>
void each_evaluation(NoEvaluation const&, Function const&) {}
template <class Loader, class... Metrics, class Function>
void each_evaluation(Evaluation<Loader, Metrics...> const& evaluation, Function const& f) {
  f(std::string(), evaluation);
}
template <class First, class... Others, class Function>
void each_evaluation(Evaluations<First, Others...> const& evaluations, Function const& f) {
  f(std::string(), evaluations.first);
  std::apply([&](auto const&... other) { (f(other.first + "_", other.second), ...); }, evaluations.others);
}

}  // namespace detail

}}}  // namespace lockstep::train
