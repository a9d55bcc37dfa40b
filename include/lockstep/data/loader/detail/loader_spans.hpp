// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

[[nodiscard]] constexpr char const* name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::read:
      return "read";
    case Phase::plan:
      return "plan";
    case Phase::write:
      return "write";
    case Phase::finish:
      return "finish";
    case Phase::done:
      break;
  }
  return "";
}

/// Returns the span of a job that one of `workers` has done.
template <class Job, class Worker, class Workers>
[[nodiscard]] Span span_of(Job const& job, Worker const& worker, double now, Workers const& workers) noexcept {
  auto const place =
      std::find_if(workers.begin(), workers.end(), [&](auto const& each) { return each.get() == &worker; });
  return {.name = name_of(job.phase),
          .begin = worker.since,
          .end = now,
          .number = job.slot->step,
          .amount = job.end - job.begin,
          .first = static_cast<int>(place - workers.begin()),
          .kind = Span::Kind::batch};
}

/// Returns the number of micro-steps that are ready, as a level.
[[nodiscard]] inline Span queue_level(Index ready) noexcept {
  auto const now = Clock::seconds();
  return {.name = "batches ready", .begin = now, .end = now, .amount = ready, .kind = Span::Kind::level};
}

}}}  // namespace lockstep::data::detail
