// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/train/metric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// What to evaluate on and what to count: `Evaluation{loader, Accuracy{&Article::label}}`. Does not own the loader.
template <class Loader, class... Metrics>
struct Evaluation {
  static_assert(
      (Metric<Metrics> && ...),
      "Lockstep: what an Evaluation counts by is no metric: it lacks totals() -> std::span<double>, value() -> "
      "double or name() -> char const*; see docs/reference/trainer.md");

  Loader& loader;
  std::tuple<Metrics...> metrics;

  explicit Evaluation(Loader& evaluation_loader, Metrics... m) : loader(evaluation_loader), metrics(std::move(m)...) {}
};
template <class Loader, class... Metrics>
Evaluation(Loader&, Metrics...) -> Evaluation<Loader, Metrics...>;

/// Trains without looking back.
struct NoEvaluation {};

template <class T>
inline constexpr bool is_evaluation = std::is_same_v<T, NoEvaluation>;
template <class Loader, class... Metrics>
inline constexpr bool is_evaluation<Evaluation<Loader, Metrics...>> = true;

}  // namespace lockstep::inline LOCKSTEP_ABI::train
