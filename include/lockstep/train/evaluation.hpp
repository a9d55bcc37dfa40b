// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/train/detail/loads_batches.hpp>
#include <lockstep/train/metric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {
namespace detail {

/// Whether a metric says nothing of it, or what can be read.
template <class M>
inline constexpr bool says_what_is_better = true;
template <class M>
requires requires { M::higher_is_better; }
inline constexpr bool says_what_is_better<M> = requires { typename std::bool_constant<M::higher_is_better>; };

}  // namespace detail

/// What to evaluate on and what to count: `Evaluation{loader, Accuracy{&Article::label}}`. Does not own the loader.
template <class Loader, class... Metrics>
struct Evaluation {
  static_assert(
      detail::LoadsBatches<Loader>,
      "Lockstep: an Evaluation's first argument is no data::DataLoader that is not const; a dataset goes into "
      "one: data::DataLoader{dataset, sampler, collate, {.batch_size = 32}}; see docs/reference/data-loader.md");
  static_assert(
      (Metric<Metrics> && ...),
      "Lockstep: what an Evaluation counts by is no metric: it lacks totals() -> std::span<double>, value() -> "
      "double (or values(each)) or name() -> char const*; see docs/reference/trainer.md");
  static_assert((detail::says_what_is_better<Metrics> && ...),
                "Lockstep: a metric's higher_is_better is `static constexpr bool higher_is_better = false` (or true), "
                "public; see docs/reference/trainer.md");

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
