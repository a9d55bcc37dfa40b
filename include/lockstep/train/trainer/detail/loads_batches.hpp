// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
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
}}}  // namespace lockstep::train::detail
