// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/detail/peer_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE std::string PeerWatch::rank_name(int rank) const {
  return run_rank_name(members_[static_cast<std::size_t>(rank)]);
}

LOCKSTEP_INLINE int PeerWatch::lost_rank() const noexcept {
  return world_.segment ? world_.segment->control().first_failure() : -1;
}

LOCKSTEP_INLINE void PeerWatch::throw_with_cause(std::string const& failure, std::string const& doing) const {
  bool const has_peers = members_.size() > 1;
  for (auto const end = Clock::seconds() + grace_seconds; has_peers && world_.segment && Clock::seconds() < end;) {
    if (lost_rank() >= 0) throw_lost(lost_rank(), doing + " (" + failure + ")");
    ::usleep(1000);
  }
  throw CommunicationError(own_name() + ": " + failure + " in " + doing +
                           (has_peers ? "; another rank may be lost, which one is not determined" : ""));
}

LOCKSTEP_INLINE bool PeerWatch::warns_for_group(std::vector<int> const& missing) const noexcept {
  for (int const rank : members_)
    if (std::find(missing.begin(), missing.end(), rank) == missing.end()) return missing.empty() || rank == world_.rank;
  return false;
}

LOCKSTEP_INLINE std::string PeerWatch::run_rank_name(int rank) const {
  return world_.segment ? world_.segment->control().rank_name(rank) : "rank " + std::to_string(rank);
}

LOCKSTEP_INLINE int PeerWatch::ended_rank() const noexcept {
  for (auto const rank : members_)
    if (world_.segment && world_.segment->control().has_ended(rank)) return rank;
  return -1;
}

LOCKSTEP_INLINE void PeerWatch::throw_lost(int rank, std::string const& doing) const {
  throw RankLost(rank, world_.segment->control().describe(rank) + "; " + own_name() + " was waiting in " + doing);
}

}}}  // namespace lockstep::comm::detail
