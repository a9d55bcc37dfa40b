// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/detail/secret.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/peer_text.hpp>
#include <lockstep/launch/run/detail/job_key.hpp>
#include <lockstep/launch/run/detail/launched_world.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/rank_watch.hpp>
#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/store/store_server.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the first host of Slurm's compact list: "gpu003" of "gpu[003-004,010],login1".
[[nodiscard]] std::string first_slurm_host(std::string_view list);

/// Address of rank 0's store, for ranks on several hosts.
struct RendezvousAddress {
  std::string host;
  std::vector<std::uint16_t> ports;  ///< the store uses the first free one of these
  std::uint64_t run = 0;             ///< equal on all ranks of a run, different in any other run
  std::string local_name = {};       ///< abstract Unix socket of the store, instead of host and ports
};

/// Returns the address at which the ranks connect. torchrun's agent listens on MASTER_PORT itself, and srun sets no
/// port. Ranks then try a few ports derived from the run's name, below the system's ephemeral ports.
/// @throws ConfigError if rank 0's host is unknown
[[nodiscard]] RendezvousAddress rendezvous_address(Environment const& place, Options const& options,
                                                   Lookup variable = {});

/// Limits the store to this user's processes on this host if the run has no secret, and all ranks are on it. Warns on
/// rank 0 about a run on several hosts that has no secret.
/// @throws ConfigError for such a run with `Options::require_secret`
void protect(RendezvousAddress& address, std::string const& secret, Environment const& place, Options const& options);

/// Opens rank 0's store on the first free port.
/// @throws ConfigError if none is free
void open_store(std::optional<StoreServer>& server, RendezvousAddress const& address, StoreAddress const& at);

/// Connects to this run's store, on any of the ports.
/// @throws ConfigError after the time limit, with the last refusal of this rank, else the last error
StoreConnection connect_to_store(StoreAddress at, RendezvousAddress const& address);

/// Returns the error of a rank that learns of another's end before all have arrived.
ConfigError ended_early(StoreConnection::Message const& notification);

/// Waits until all ranks have arrived and exchanged their hosts. Each of torchrun's agents counts its own restarts; the
/// largest count is used.
/// @param seconds the time limit, for messages
/// @throws ConfigError with the ranks that have not arrived in time, or that arrived and are gone
inline void rendezvous(World& world, StoreConnection& notifications, double seconds, Deadline deadline) try {
  RankArrival own{world.rank == 0 ? new_job() : 0, ::getpid(), world.restarts, {}};
  ::gethostname(own.host, sizeof own.host - 1);
  std::vector<RankArrival> all(static_cast<std::size_t>(world.size));
  std::vector<int> all_ranks(all.size());
  std::iota(all_ranks.begin(), all_ranks.end(), 0);
  int arrived = 0;
  auto const take = [&](Store::Part part) {
    if (part.bytes.size() != sizeof own)
      throw ConfigError("launch: rank " + std::to_string(part.rank) + " sent " + std::to_string(part.bytes.size()) +
                        " bytes when it joined, " + std::to_string(sizeof own) +
                        " were expected; start the same program everywhere");
    all[static_cast<std::size_t>(part.rank)] = from_bytes<RankArrival>(part.bytes);
    ++arrived;
  };
  auto const query_missing = [&] {
    auto const until = deadline_in(max_late_seconds / 2);
    return world.store->missing("come", all_ranks, [&] { return Clock::nanoseconds() >= until; });
  };
  world.store->contribute("come", as_bytes(own), world.size);
  std::optional<StoreConnection::Message> early_end;
  auto const overdue = [&] { return deadline != no_deadline && Clock::nanoseconds() > deadline + 1'000'000'000; };
  while (!world.store->gathered("come", take)) {
    if (early_end = notifications.next(); early_end) {
      if (world.store->gathered("come", take)) break;  // the last rank arrived just before
      throw ended_early(*early_end);
    }
    pollfd polled[]{{world.store->descriptor(), POLLIN, 0}, {notifications.descriptor(), POLLIN, 0}};
    bool const has_event = ::poll(polled, 2, milliseconds_until(deadline)) != 0;
    if ((has_event && !overdue()) || Clock::nanoseconds() < deadline) continue;
    std::string missing;
    for (int const r : query_missing().value_or(std::vector{0}))
      missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    if (missing.empty() && !overdue()) continue;
    auto const text = "of " + std::to_string(world.size) + " ranks these have not joined within " +
                      std::to_string(static_cast<long>(seconds)) + " s: " + missing + "; were they started?";
    RankEnd how{2, 0, {}};
    text.copy(how.message, sizeof how.message - 1);
    notifications.send(store_message(static_cast<std::uint8_t>(StoreCall::ended), {}, as_bytes(how)),
                       deadline_in(max_late_seconds / 4));
    static_cast<void>(query_missing());  // the server answers after it has passed that on
    throw ConfigError("launch: " + text);
  }
  if (arrived != world.size)
    throw ConfigError("launch: the store has gathered " + std::to_string(arrived) + " of " +
                      std::to_string(world.size) + " ranks; start the same program everywhere");
  world.job = all[0].job;
  world.segment = SharedSegment::between_threads(world.size, world.job);
  for (auto const& one : all) world.restarts = std::max(world.restarts, one.restarts);
  for (int r = 0; r < world.size; ++r)
    world.segment->control().join(r, all[static_cast<std::size_t>(r)].pid,
                                  peer_text(all[static_cast<std::size_t>(r)].host));
  if (early_end) record_notification(world.segment->control(), world.rank, *early_end);
} catch (CommunicationError const& error) {
  std::optional<StoreConnection::Message> last;  // notification that arrived before
  try {
    last = notifications.next();
  } catch (CommunicationError const&) {
  }
  if (last) throw ended_early(*last);
  throw ConfigError(std::string("launch: rank 0 joined and ended before all ranks had joined (") + error.what() +
                    "); see its own message");
}

inline void rendezvous(World& world, StoreConnection& notifications, double seconds) {
  rendezvous(world, notifications, seconds, deadline_in(seconds));
}

/// Runs `train` as one of the ranks that another launcher has started on several hosts. They connect to a store on rank
/// 0, and learn from it which ranks have ended, failed or are lost. Each rank has a control page of its own for this.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the rendezvous fails
int run_multi_host_rank(Environment const& place, Options const& options, std::function<int(World&)> const& train,
                        Lookup variable = {});

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/multi_host_rank.ipp>
#endif
