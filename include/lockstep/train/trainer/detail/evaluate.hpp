// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/trainer/detail/check_evaluation.hpp>
#include <lockstep/train/trainer/detail/with_sample_name.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Totals of one shard of an evaluation.
template <class... Metrics>
struct ShardTotals {
  nn::Loss<HostSpace> loss;
  double samples = 0;
  std::tuple<Metrics...> metrics;

  /// Calls f(double&) for each number that adds up over shards, in a fixed order.
  template <class Function>
  void each_total(Function&& f) {
    f(loss.sum);
    f(loss.weight);
    f(samples);
    auto const each_of = [&](auto& metric) {
      for (double& total : metric.totals()) f(total);
    };
    std::apply([&](auto&... metric) { (each_of(metric), ...); }, metrics);
  }
};

/// Returns the number of totals of each metric. It must not change, because totals add up element by element over
/// devices and ranks.
template <class... Metrics>
[[nodiscard]] std::vector<std::size_t> sizes_of(std::tuple<Metrics...>& metrics) {
  return std::apply(
      [](auto&... metric) { return std::vector<std::size_t>{std::span<double>(metric.totals()).size()...}; }, metrics);
}
/// @throws ConfigError for a metric whose number of totals has changed
[[noreturn, gnu::cold]] void refuse_sizes(char const* metric, std::size_t before, std::size_t after);
/// @throws ConfigError that names a metric whose number of totals has changed
template <class... Metrics>
[[gnu::cold]] void check_sizes(std::tuple<Metrics...>& metrics, std::vector<std::size_t> const& before) {
  auto const after = sizes_of(metrics);
  std::size_t i = 0;
  auto const check = [&](auto const& metric) {
    if (after[i] != before[i]) refuse_sizes(metric.name(), before[i], after[i]);
    ++i;
  };
  std::apply([&](auto const&... metric) { (check(metric), ...); }, metrics);
}

/// Checks that the loss has a weight, as a mean over weight 0 would look perfect.
/// @throws DataError if the weight is 0
[[gnu::cold]] void check_evaluated(std::string const& prefix, nn::Loss<HostSpace> const& loss, double samples);

/// Adds a metric to a report.
[[gnu::cold]] void add_metric(EvaluationReport& report, std::string const& name, double value);
/// Adds the results of a further evaluation to a report as metrics. Without a prefix, `other` replaces the report.
[[gnu::cold]] void add_report(EvaluationReport& report, std::string const& prefix, EvaluationReport&& other);

/// Replaces the concatenated totals of this process's shards by their sum over all shards of all ranks.
/// @collective with DistributedDataParallel
[[gnu::cold]] void sum_over_shards(parallel::AnySession& session, std::vector<double>& totals, int shards);

/// Adds the samples that metrics keep on the other devices and ranks to the metrics of the first shard, in the order of
/// shards.   @collective with DistributedDataParallel if a metric keeps samples
template <class Session, class... Metrics>
void gather_samples(Session& session, data::Split const& split, std::vector<ShardTotals<Metrics...>>& parts) {
  int const ranks = split.all / split.count, own = split.first / split.count;
  auto const gather = [&]<std::size_t Place>(std::integral_constant<std::size_t, Place>) {
    if constexpr (HasSamples<std::tuple_element_t<Place, std::tuple<Metrics...>>>) {
      std::vector<std::string> here;
      for (auto const& part : parts) here.push_back(std::get<Place>(part.metrics).samples());
      for (int rank = 0; rank < ranks; ++rank)
        for (std::size_t shard = 0; shard < parts.size(); ++shard) {
          auto bytes = rank == own ? here[shard] : std::string();
          session.broadcast(bytes, rank);
          if (rank != own || shard > 0) std::get<Place>(parts[0].metrics).add_samples(bytes);
        }
    }
  };
  [&]<std::size_t... Place>(std::index_sequence<Place...>) {
    (gather(std::integral_constant<std::size_t, Place>{}), ...);
  }
  (std::index_sequence_for<Metrics...>{});
}

/// Ends an evaluation of a fit that is to stop, on all ranks.
struct EvaluationInterrupted {};

/// Exchanges requests to stop between ranks that evaluate (docs/decisions/0130). Each rank decides when it takes part
/// in an exchange, and learns from its sum whether it is the last one.
class EvaluationStops {
 public:
  EvaluationStops(parallel::AnySession& session, std::stop_token const& stop);

  /// Takes part in an exchange if this rank has a request, or two seconds after the last exchange.
  /// @collective with DistributedDataParallel
  /// @throws EvaluationInterrupted on all ranks if a rank has a request
  void before_step();
  /// Waits until all ranks have made their steps.   @collective with DistributedDataParallel
  /// @throws EvaluationInterrupted on all ranks if a rank has a request before all have made their steps
  void finish();

 private:
  static constexpr double interval_seconds = 2;

  /// Returns whether any rank has further steps; `has_steps` says it of this one.
  bool exchange(bool has_steps);

  parallel::AnySession& session_;
  std::stop_token stop_;
  double last_;
};

/// Returns the mean loss and the metrics over `steps` steps of a started loader, over all shards of all ranks. Calls
/// on_progress(done, steps) after each step, if `on_progress` is not empty. Makes no further steps after a request by
/// the `stop` of any rank.
/// @collective with DistributedDataParallel   @throws DataError if all of the loader's steps have weight 0
/// @throws EvaluationInterrupted on all ranks if one has not made all steps
template <class Session, class Loader, class... Metrics>
[[nodiscard, gnu::cold]] EvaluationReport evaluate(Session& session, data::Split const& split,
                                                   std::string const& prefix,
                                                   Evaluation<Loader, Metrics...> const& evaluation, Index steps,
                                                   ProgressCallback const& on_progress = {},
                                                   std::stop_token const& stop = {}) {
  auto const shards = split.count;
  std::vector<ShardTotals<Metrics...>> parts(static_cast<std::size_t>(shards), {{}, 0, evaluation.metrics});
  auto const sizes = sizes_of(parts[0].metrics);
  EvaluationStops stops(session, stop);
  for (Index step = 0; step < steps; ++step) {
    stops.before_step();
    auto const held = evaluation.loader.next();
    with_sample_name(held, [&] {
      session.for_each_shard([&](int shard, auto& replica) {
        auto& part = parts[static_cast<std::size_t>(shard)];
        auto const& batch = held.batches()[static_cast<std::size_t>(shard)];
        part.loss += std::apply([&](auto&... metric) { return replica.evaluate(batch, metric...); }, part.metrics);
        part.samples += static_cast<double>(batch.rows());
      });
    });
    if (on_progress) on_progress(step + 1, steps);
  }

  for (auto& part : parts) check_sizes(part.metrics, sizes);
  stops.finish();
  std::vector<double> totals;
  for (auto& part : parts) part.each_total([&](double t) { totals.push_back(t); });
  sum_over_shards(session, totals, shards);
  auto next = totals.begin();
  parts[0].each_total([&](double& t) { t = *next++; });
  gather_samples(session, split, parts);
  if (steps == exact_steps(evaluation.loader, split)) check_evaluated(prefix, parts[0].loss, parts[0].samples);

  EvaluationReport report;
  report.samples = static_cast<Index>(parts[0].samples);
  report.loss = parts[0].loss.mean();
  auto const add = [&](std::string const& name, double value) { add_metric(report, name, value); };
  std::apply([&](auto const&... metric) { (each_value(metric, add), ...); }, parts[0].metrics);
  return report;
}

/// Returns the report of the first evaluation by evaluate(prefix, evaluation), with the results of the others as
/// metrics under their prefix.
template <class Evaluation, class Evaluate>
[[nodiscard, gnu::cold]] EvaluationReport combined_report(Evaluation const& evaluations, Evaluate const& evaluate) {
  EvaluationReport all;
  each_evaluation(evaluations, [&](std::string const& prefix, auto const& evaluation) {
    add_report(all, prefix, evaluate(prefix, evaluation));
  });
  return all;
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/evaluate.ipp>
#endif
