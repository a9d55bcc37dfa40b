// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/train/trainer/detail/evaluate.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void check_evaluated(std::string const& prefix, nn::Loss<HostSpace> const& loss, double samples) {
  if (loss.weight != 0) return;
  throw DataError(
      "evaluate" + evaluation_label(prefix) + ": the losses over " + std::to_string(static_cast<Index>(samples)) +
      " samples have the sum " + shortest(loss.sum) +
      " and the weight 0, so there is no mean to judge by; a loss returns both: the sum over the batch, and its "
      "weight, the number of samples or elements. If all labels are ignored, or have classes of "
      "weight 0, the weight is 0; check the evaluation's labels, or pass no evaluation");
}

LOCKSTEP_COLD_INLINE void refuse_sizes(char const* metric, std::size_t before, std::size_t after) {
  throw ConfigError("evaluate: the metric " + std::string(metric) + " had " + std::to_string(before) +
                    " totals and now has " + std::to_string(after) +
                    " after batches were added; totals are summed over devices and ranks, so their "
                    "number must not change: allocate all of them at the start, as train::Auc does");
}

LOCKSTEP_COLD_INLINE EvaluationStops::EvaluationStops(parallel::AnySession& session, std::stop_token const& stop)
    : session_(session), stop_(stop), last_(Clock::seconds()) {}

LOCKSTEP_COLD_INLINE void EvaluationStops::before_step() {
  if (!stop_.stop_requested() && Clock::seconds() - last_ < interval_seconds) return;
  exchange(true);
  last_ = Clock::seconds();
}

LOCKSTEP_COLD_INLINE void EvaluationStops::finish() {
  while (exchange(false)) {
  }
}

LOCKSTEP_COLD_INLINE bool EvaluationStops::exchange(bool has_steps) {
  std::array ranks{has_steps ? 1.0 : 0.0, stop_.stop_requested() ? 1.0 : 0.0};
  session_.all_reduce(ranks);
  if (ranks[0] > 0 && ranks[1] > 0) throw EvaluationInterrupted{};
  return ranks[0] > 0;
}

LOCKSTEP_COLD_INLINE void sum_over_shards(parallel::AnySession& session, std::vector<double>& totals, int shards) {
  auto const each = totals.size() / static_cast<std::size_t>(shards);
  for (std::size_t i = 0; i < each; ++i)
    totals[i] = tree_sum(shards, [&](int shard) { return totals[static_cast<std::size_t>(shard) * each + i]; });
  totals.resize(each);
  session.all_reduce(totals);
}

LOCKSTEP_COLD_INLINE void add_metric(EvaluationReport& report, std::string const& name, double value) {
  report.metrics.emplace_back(name, value);
}

LOCKSTEP_COLD_INLINE void add_report(EvaluationReport& report, std::string const& prefix, EvaluationReport&& other) {
  if (prefix.empty()) {
    report = std::move(other);
    return;
  }
  report.metrics.emplace_back(prefix + "loss", other.loss);
  for (auto const& [name, value] : other.metrics) report.metrics.emplace_back(prefix + name, value);
}

}}}  // namespace lockstep::train::detail
