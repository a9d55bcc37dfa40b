// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/profile_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE SlowestRank slowest_of(train::RunRecord const& record) {
  auto const own = [](train::RankSeconds const& r) { return r.data_wait + r.compute + r.optimizer; };
  if (record.ranks.empty()) return {};
  auto const *least = record.ranks.data(), *most = least;
  for (auto const& rank : record.ranks) {
    if (own(rank) < own(*least)) least = &rank;
    if (own(rank) >= own(*most)) most = &rank;
  }
  SlowestRank out{.rank = static_cast<int>(most - record.ranks.data()),
                  .lag_ms = record.ms_per_step(own(*most) - own(*least))};
  for (auto const& [phase, seconds] : {std::pair{"compute", &train::RankSeconds::compute},
                                       {"optimizer", &train::RankSeconds::optimizer},
                                       {"data", &train::RankSeconds::data_wait}}) {
    auto const ms = record.ms_per_step((*most).*seconds), min_ms = record.ms_per_step((*least).*seconds);
    if (ms - min_ms > out.ms - out.min_ms) {
      out.phase = phase;
      out.ms = ms;
      out.min_ms = min_ms;
    }
  }
  return out;
}

namespace detail {

LOCKSTEP_INLINE void add_loads(StepProfile& out, train::RunRecord const& record) {
  auto const steps = static_cast<double>(record.steps - record.resumed());
  if (record.loads.size() != record.ranks.size() || steps <= 0) return;
  for (std::size_t i = 0; i < record.loads.size(); ++i) {
    auto const& seconds = record.ranks[i];
    auto const& load = record.loads[i];
    if (load.cores <= 0) return out.ranks.clear();
    out.ranks.push_back({.data_ms = record.ms_per_step(seconds.data_wait),
                         .compute_ms = record.ms_per_step(seconds.compute),
                         .communication_ms = record.ms_per_step(seconds.communication),
                         .optimizer_ms = record.ms_per_step(seconds.optimizer),
                         .processor_ms = 1e3 * load.compute_seconds / steps,
                         .deviation_ms = 1e3 * load.deviation_seconds,
                         .queued_ms = 1e3 * load.queued_seconds / steps,
                         .loader_ms = 1e3 * load.loader_seconds / steps,
                         .throttled_ms = 1e3 * load.throttled_seconds / steps,
                         .observed = load.observed,
                         .locked = load.locked,
                         .threads = load.threads,
                         .cores = load.cores,
                         .core_set = load.core_set});
  }
}

}  // namespace detail

LOCKSTEP_INLINE StepProfile profile_of(train::RunRecord const& record) {
  StepProfile out{.shards = Index{record.world_size} * record.devices,
                  .threads = record.threads,
                  .effective_batch_size = record.effective_batch_size,
                  .samples_per_step =
                      record.steps == 0 ? 0 : static_cast<double>(record.samples) / static_cast<double>(record.steps),
                  .samples_per_second = record.samples_per_second(),
                  .data_wait_ms = record.ms_per_step(record.data_wait_seconds),
                  .forward_ms = record.ms_per_step(record.phases.forward),
                  .backward_ms = record.ms_per_step(record.phases.backward),
                  .communication_ms = record.ms_per_step(record.phases.communication),
                  .optimizer_ms = record.ms_per_step(record.phases.optimizer),
                  .pass_ms = record.ms_per_step(record.phases.pass),
                  .slowest = slowest_of(record),
                  .gpu = record.device_step(),
                  .fast_step_ms = 1e3 * record.step_quantile(0.1)};
  out.gradient_bytes = static_cast<double>(record.parameters) *
                       static_cast<double>(size_of(parallel::element_type(record.gradient_wire)));
  detail::add_loads(out, record);
  return out;
}

}}}  // namespace lockstep::scaling
