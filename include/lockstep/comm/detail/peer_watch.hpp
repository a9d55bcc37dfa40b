// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Waits for engines whose library does not report lost peers: checks the ranks' control page while it waits.
class PeerWatch {
 public:
  /// @param members the group's ranks, as ranks of the run
  PeerWatch(launch::World world, std::vector<int> members) : world_(std::move(world)), members_(std::move(members)) {}

  [[nodiscard]] launch::World const& world() const noexcept { return world_; }
  [[nodiscard]] std::string rank_name(int rank) const;
  [[nodiscard]] std::string own_name() const { return run_rank_name(world_.rank); }
  /// Returns the rank of the run that failed first, or -1.
  [[nodiscard]] int lost_rank() const noexcept;

  /// Returns once `done()` is true. `describe()` says what this rank waits in. `missing()` returns the ranks of the
  /// run it waits for, or none if they are unknown.
  /// @throws RankLost if a rank has failed, or exited more than grace_seconds ago; RankStalled after the limit
  template <class Done, class Describe>
  void wait_until(Done const& done, Describe const& describe) const {
    wait_until(done, describe, [] { return std::vector<int>(); });
  }
  template <class Done, class Describe, class Missing>
  void wait_until(Done const& done, Describe const& describe, Missing const& missing) const {
    auto const since = Clock::seconds();
    double ended_seconds = 0;  // when a rank was first seen to have exited
    bool warned = false;
    for (Backoff backoff; !done();) {
      if (backoff.pause()) continue;
      ::usleep(sleep_us);
      auto const now = Clock::seconds();
      if (lost_rank() >= 0) {
        if (done()) return;  // the rank had finished its part before
        throw_lost(lost_rank(), describe());
      }
      if (auto const rank = ended_rank(); rank >= 0) {  // its last messages may still arrive
        if (ended_seconds == 0) ended_seconds = now;
        if (now - ended_seconds > grace_seconds) throw_lost(rank, describe());
      }
      auto const waited = now - since;
      bool const stalls = waited > world_.limits.stall_seconds, warns = !warned && waited > world_.limits.warn_seconds;
      if (!stalls && !warns) continue;
      auto const late = missing();
      if (done()) return;              // the operation completed in between
      if (lost_rank() >= 0) continue;  // a rank failed in between
      auto message = own_name() + " has waited " + std::to_string(std::lround(waited)) + " s in " + describe();
      if (late.empty()) message += ", which every rank has started; the late rank is unknown";
      for (auto const rank : late) message += (rank == late.front() ? " for " : ", and for ") + run_rank_name(rank);
      if (stalls) throw RankStalled(late.empty() ? -1 : late.front(), message + ". The limit is over");
      warned = true;
      if (world_.warn && warns_for_group(late)) world_.warn(message + "; still waiting");
    }
  }

  /// Explains a failure that a lost rank may have caused: waits a little, since the loss may be noticed after its
  /// effect.
  /// @throws RankLost, with the rank's name, if a rank is lost; else CommunicationError
  [[noreturn]] void throw_with_cause(std::string const& failure, std::string const& doing) const;

 private:
  static constexpr unsigned sleep_us = 20;
  static constexpr double grace_seconds = 1;

  /// Returns whether this rank warns for all that wait for the same ranks: the first of them does.
  [[nodiscard]] bool warns_for_group(std::vector<int> const& missing) const noexcept;
  [[nodiscard]] std::string run_rank_name(int rank) const;
  [[nodiscard]] int ended_rank() const noexcept;
  [[noreturn]] void throw_lost(int rank, std::string const& doing) const;

  launch::World world_;
  std::vector<int> members_;
};

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/detail/peer_watch.ipp>
#endif
