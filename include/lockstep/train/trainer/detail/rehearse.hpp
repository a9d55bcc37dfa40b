// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Number of micro-steps whose batches decide which shapes are frequent.
inline constexpr Index foreseen_micro_steps = 256;

/// Returns the most frequent shapes, at most `most`, ordered by size with the largest first. Rare shapes, of fewer than
/// four batches, are left out. Returns none if more than a quarter of the batches have other shapes: then recordings
/// would be replaced before they are used.
template <class Shape>
[[nodiscard]] std::vector<Shape> frequent_shapes(std::vector<Shape> shapes, std::size_t most) {
  Index all = 0, covered = 0;
  for (auto const& shape : shapes) all += shape.batches;
  std::stable_sort(shapes.begin(), shapes.end(), [](auto const& a, auto const& b) { return a.batches > b.batches; });
  if (shapes.size() > most) shapes.resize(most);
  while (!shapes.empty() && shapes.back().batches < 4) shapes.pop_back();
  for (auto const& shape : shapes) covered += shape.batches;
  if (4 * covered < 3 * all) return {};
  auto const size = [](Shape const& shape) {
    Index elements = 1;
    for (auto const length : shape.padded.lengths) elements += length;
    return shape.rows * elements;
  };
  std::stable_sort(shapes.begin(), shapes.end(), [&](auto const& a, auto const& b) { return size(a) > size(b); });
  return shapes;
}

/// Returns the kinds of micro-steps of a step, in order.
[[nodiscard]] std::vector<parallel::MicroStep> kinds_of_micro_steps(FitPlan const& plan);

/// Makes memory, plans and, if `makes` says so, recordings for the frequent shapes of the batches that follow `steps`
/// steps. Changes no parameters, buffers or random numbers. Does nothing on the host, and for data whose shapes are not
/// known in advance.
/// @returns the number of shapes whose passes are recorded
template <class Session, class Loader>
[[nodiscard, gnu::cold]] Index rehearse([[maybe_unused]] Session& session, [[maybe_unused]] Loader const& loader,
                                        [[maybe_unused]] FitPlan const& plan, [[maybe_unused]] Index steps,
                                        [[maybe_unused]] data::Split const& split,
                                        [[maybe_unused]] FitOptions const& options,
                                        [[maybe_unused]] parallel::Rehearse makes) {
  using Replica = typename Session::DeviceReplica;
  if constexpr (!Replica::Space::host_accessible && KnowsComingShapes<Loader>) {
    auto const kinds = kinds_of_micro_steps(plan);
    auto const most = std::min(static_cast<std::size_t>(options.shapes_ahead), Replica::max_rehearsals(kinds.size()));
    if (most == 0) return 0;
    auto const left = plan.all_micro_steps(plan.steps) - plan.all_micro_steps(steps);
    auto const shapes =
        frequent_shapes(loader.coming_shapes(split, plan.trainer_epoch(steps), plan.begin(steps),
                                             plan.before.epochs + plan.epochs, std::min(left, foreseen_micro_steps)),
                        most);
    std::vector<decltype(loader.zeros(shapes.front()))> zeros;
    std::vector<typename Loader::Batch> batches;
    for (auto const& shape : shapes) batches.push_back(zeros.emplace_back(loader.zeros(shape)).batch());
    return session.rehearse(std::span(std::as_const(batches)), std::span(kinds), makes);
  } else {
    return 0;
  }
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/rehearse.ipp>
#endif
