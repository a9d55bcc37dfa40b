// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
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
  for (auto& seconds : out) seconds = {at[0], at[1], at[2], at[3]}, at += each;
  return out;
}

}}}  // namespace lockstep::train::detail
