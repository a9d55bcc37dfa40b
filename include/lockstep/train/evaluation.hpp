// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>
#include <utility>

#include <lockstep/train/metric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// What to evaluate on and what to count: `Evaluation{loader, Accuracy{&Article::label}}`. Does not own the loader.
template <class Loader, Metric... Metrics>
struct Evaluation {
  Loader& loader;
  std::tuple<Metrics...> metrics;

  explicit Evaluation(Loader& evaluation_loader, Metrics... m) : loader(evaluation_loader), metrics(std::move(m)...) {}
};
template <class Loader, class... Metrics>
Evaluation(Loader&, Metrics...) -> Evaluation<Loader, Metrics...>;

/// Trains without looking back.
struct NoEvaluation {};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
