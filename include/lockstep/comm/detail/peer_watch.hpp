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
  [[nodiscard]] std::string who(int rank) const { return who_of_run(members_[static_cast<std::size_t>(rank)]); }
  [[nodiscard]] std::string me() const { return who_of_run(world_.rank); }
  /// Returns the rank of the run that failed first, or -1.
  [[nodiscard]] int lost() const noexcept { return world_.segment ? world_.segment->control().first_failure() : -1; }

  /// Returns once `done()` is true. `doing()` describes what this rank waits in. `missing()` returns the ranks of the
  /// run it waits for, or none if they are unknown.
  /// @throws RankLost if a rank has failed, or exited more than grace_seconds ago; RankStalled after the limit
  template <class Done, class Doing>
  void until(Done const& done, Doing const& doing) const {
    until(done, doing, [] { return std::vector<int>(); });
  }
  template <class Done, class Doing, class Missing>
  void until(Done const& done, Doing const& doing, Missing const& missing) const {
    auto const since = Clock::seconds();
    double ended_seconds = 0;  // when a rank was first seen to have exited
    bool warned = false;
    for (Backoff backoff; !done();) {
      if (backoff.pause()) continue;
      ::usleep(sleep_us);
      auto const now = Clock::seconds();
      if (lost() >= 0) {
        if (done()) return;  // the rank had finished its part before
        throw_lost(lost(), doing());
      }
      if (auto const rank = ended(); rank >= 0) {  // its last messages may still arrive
        if (ended_seconds == 0) ended_seconds = now;
        if (now - ended_seconds > grace_seconds) throw_lost(rank, doing());
      }
      auto const waited = now - since;
      bool const stalls = waited > world_.limits.stall_seconds, warns = !warned && waited > world_.limits.warn_seconds;
      if (!stalls && !warns) continue;
      auto const whom = missing();
      if (done()) return;         // the operation completed in between
      if (lost() >= 0) continue;  // a rank failed in between
      auto told = me() + " has waited " + std::to_string(std::lround(waited)) + " s in " + doing();
      if (whom.empty()) told += ", which every rank has started; the late rank is unknown";
      for (auto const rank : whom) told += (rank == whom.front() ? " for " : ", and for ") + who_of_run(rank);
      if (stalls) throw RankStalled(whom.empty() ? -1 : whom.front(), told + ". The limit is over");
      warned = true;
      if (world_.warn && speaks(whom)) world_.warn(told + "; still waiting");
    }
  }

  /// Explains a failure that a lost rank may have caused: waits a little, since the loss may be noticed after its
  /// effect.
  /// @throws RankLost, with the rank's name, if a rank is lost; else CommunicationError
  [[noreturn]] void explain(std::string const& failure, std::string const& doing) const {
    bool const others = members_.size() > 1;
    for (auto const end = Clock::seconds() + grace_seconds; others && world_.segment && Clock::seconds() < end;) {
      if (lost() >= 0) throw_lost(lost(), doing + " (" + failure + ")");
      ::usleep(1000);
    }
    throw CommunicationError(me() + ": " + failure + " in " + doing +
                             (others ? "; another rank may be lost, which one is not determined" : ""));
  }

 private:
  static constexpr unsigned sleep_us = 20;
  static constexpr double grace_seconds = 1;

  /// Returns whether this rank warns for all that wait for the same ranks: the first of them does.
  [[nodiscard]] bool speaks(std::vector<int> const& missing) const noexcept {
    for (int const rank : members_)
      if (std::find(missing.begin(), missing.end(), rank) == missing.end())
        return missing.empty() || rank == world_.rank;
    return false;
  }
  [[nodiscard]] std::string who_of_run(int rank) const {
    return world_.segment ? world_.segment->control().who(rank) : "rank " + std::to_string(rank);
  }
  [[nodiscard]] int ended() const noexcept {
    for (auto const rank : members_)
      if (world_.segment && world_.segment->control().over(rank)) return rank;
    return -1;
  }
  [[noreturn]] void throw_lost(int rank, std::string const& doing) const {
    throw RankLost(rank, world_.segment->control().tell(rank) + "; " + me() + " was waiting in " + doing);
  }

  launch::World world_;
  std::vector<int> members_;
};

}}}  // namespace lockstep::comm::detail
