// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <vector>

#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the seconds of each rank by phase, from the ranks' records.
/// @collective with DistributedDataParallel
template <class Session>
[[nodiscard]] std::vector<RankSeconds> seconds_of_ranks(Session& session, RunRecord const& record, int rank) {
  constexpr std::size_t each = 4;
  auto const world = static_cast<std::size_t>(record.world_size);
  auto const& phases = record.phases;
  std::vector<double> all(each * world, 0.0);
  auto* own = all.data() + each * static_cast<std::size_t>(rank);
  *own++ = record.data_wait_seconds;
  *own++ = phases.forward + phases.backward + phases.pass;
  *own++ = phases.communication;
  *own = phases.optimizer;
  session.all_reduce(all);
  std::vector<RankSeconds> out(world);
  auto const* at = all.data();
  for (auto& seconds : out) {
    seconds = {at[0], at[1], at[2], at[3]};
    at += each;
  }
  return out;
}

/// Returns how its host's processors served each rank, from the ranks' records.
/// @collective with DistributedDataParallel
template <class Session>
[[nodiscard]] std::vector<RankLoad> loads_of_ranks(Session& session, RunRecord const& record, int rank) {
  static constexpr double RankLoad::*members[] = {
      &RankLoad::compute_seconds, &RankLoad::deviation_seconds, &RankLoad::queued_seconds, &RankLoad::throttled_seconds,
      &RankLoad::loader_seconds,  &RankLoad::observed,          &RankLoad::locked,         &RankLoad::threads,
      &RankLoad::cores,           &RankLoad::core_set};
  constexpr auto each = std::size(members);
  std::vector<double> all(each * static_cast<std::size_t>(record.world_size), 0.0);
  auto* at = all.data() + each * static_cast<std::size_t>(rank);
  for (auto const member : members) *at++ = record.load.*member;
  session.all_reduce(all);
  std::vector<RankLoad> out(static_cast<std::size_t>(record.world_size));
  at = all.data();
  for (auto& load : out)
    for (auto const member : members) load.*member = *at++;
  return out;
}

}}}  // namespace lockstep::train::detail
