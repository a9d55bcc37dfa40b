// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <optional>
#include <string>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/any_host_resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Loader of a trainer: a data::DataLoader that is not const.
template <class AnyLoader>
concept LoadsBatches = requires(AnyLoader& loader, data::Split const& split) {
  typename AnyLoader::Batch;
  loader.start(split, Index{}, Index{}, Index{});
  loader.steps(split);
  loader.next();
};

// Optional members of a loader, each with its default. data::DataLoader has all of them.

/// Makes a loader's workers record into `timeline`, by `trace(timeline)`; nothing by default.
template <class Loader>
void trace_loader(Loader& loader, Timeline* timeline) {
  if constexpr (requires { loader.trace(timeline); }) loader.trace(timeline);
}
/// Makes a loader put its batches into `memory`, by `use(memory)`; nothing by default.
template <class Loader>
void use_batch_memory(Loader& loader, memory::AnyHostResource const& memory) {
  if constexpr (requires { loader.use(memory); }) loader.use(memory);
}
/// Returns the name of a sample in the batches that a loader's next() returned, by `name_at(position)`; empty by
/// default.
template <class Held>
[[nodiscard]] std::string sample_name(Held const& held, Index position) {
  if constexpr (requires { held.name_at(position); }) return held.name_at(position);
  return {};
}
/// Returns the split for which a loader's batches were made, by `split()`; none for batches without a loader.
template <class Batches>
[[nodiscard]] std::optional<data::Split> split_of([[maybe_unused]] Batches const& batches) {
  if constexpr (requires { batches.split(); })
    return batches.split();
  else
    return std::nullopt;
}
/// Returns the micro-steps in which a loader delivers each sample once, whatever the tail of its options.
template <class Candidate>
[[nodiscard]] Index exact_steps(Candidate& loader, data::Split const& split) {
  if constexpr (requires { loader.steps(split, data::Tail::exact); })
    return loader.steps(split, data::Tail::exact);
  else
    return loader.steps(split);
}
/// Makes a loader observe its workers while it waits, by `observe()`; nothing by default.
template <class Loader>
void observe_loader(Loader& loader) {
  if constexpr (requires { loader.observe(); }) loader.observe();
}
/// Returns a loader's counters, by `stats()`; zeros by default.
template <class Loader>
[[nodiscard]] data::LoaderStats stats_of(Loader const& loader) {
  if constexpr (requires { data::LoaderStats{loader.stats()}; })
    return loader.stats();
  else
    return {};
}
/// Requires `state_before(split, epoch, step)` and `check(state)`: the loader can resume within an epoch.
template <class Loader>
concept ResumesWithinEpochs = requires(Loader const& loader, data::LoaderState const& state) {
  { loader.state_before(data::Split{}, Index{}, Index{}) } -> std::convertible_to<data::LoaderState>;
  loader.check(state);
};
/// Requires `coming_shapes(split, epoch, step, last_epoch, micro_steps)` and `zeros(shape)`: the shapes of the next
/// batches are known before samples are read.
template <class Loader>
concept KnowsComingShapes = requires(Loader const& loader, data::Split const& split) {
  loader.zeros(loader.coming_shapes(split, Index{}, Index{}, Index{}, Index{}).front());
};

}}}  // namespace lockstep::train::detail
