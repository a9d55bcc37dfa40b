// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// What a shard has seen of an evaluation.
template <class... Metrics>
struct EvaluationPart {
  nn::Loss<HostSpace> loss;
  double samples = 0;
  std::tuple<Metrics...> metrics;

  /// Calls f(double&) for each number that adds up over parts, in the same order for each.
  template <class F>
  void each_total(F&& f) {
    f(loss.sum), f(loss.weight), f(samples);
    auto const each_of = [&](auto& metric) {
      for (double& total : metric.totals()) f(total);
    };
    std::apply([&](auto&... metric) { (each_of(metric), ...); }, metrics);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
