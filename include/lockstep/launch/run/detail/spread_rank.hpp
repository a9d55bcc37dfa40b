// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/wait.hpp>
#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/meeting_point.hpp>
#include <lockstep/launch/run/detail/placed_world.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/rank_watch.hpp>
#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/store/store_server.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Opens rank 0's store on the first free port.
/// @throws ConfigError if none is free
inline void open_store(std::optional<StoreServer>& server, MeetingPoint const& point, StoreAddress const& at) {
  for (auto const port : point.ports) {
    try {
      server.emplace(
          StoreServer::Options{.job = at.job, .size = at.size, .port = port, .silence_seconds = at.silence_seconds});
      return;
    } catch (ConfigError const&) {
      if (port == point.ports.back()) throw;
    }
  }
}

/// Connects to this run's store, on any of the ports.
/// @throws ConfigError after the time limit, with the last refusal of this rank, else the last error
inline StoreLine find_store(StoreAddress at, MeetingPoint const& point) {
  auto const deadline = deadline_in(at.join_seconds);
  at.join_seconds = 0;
  std::string refusal;
  for (;; ::usleep(50'000)) {
    for (auto const port : point.ports) {
      at.port = port;
      try {
        return StoreLine(at, StoreLineKind::calls);
      } catch (Error const& error) {  // no server yet, another run, or no store
        if (dynamic_cast<StoreRefusal const*>(&error)) refusal = error.what();
        if (Clock::nanoseconds() >= deadline)
          throw ConfigError("launch: rank 0 was not found on " + at.host + ": " +
                            (refusal.empty() ? error.what() : refusal));
      }
    }
  }
}

/// Returns the error of a rank that learns of another's end before all have arrived.
inline ConfigError gone_early(StoreLine::Message const& news) {
  auto const how = from_store<StoreEnd>(news.value);
  bool const says = news.what == StoreReply::rank_ended && how.message[0] != '\0';
  return ConfigError("launch: rank " + std::to_string(news.rank) + " joined and ended before all ranks had joined" +
                     (says ? std::string(": ") + how.message : "; see its own message"));
}

/// Waits until all ranks have arrived and exchanged their hosts. Each of torchrun's agents counts its own restarts; the
/// largest count is used.
/// @throws ConfigError with the ranks that have not arrived in time, or that arrived and are gone
inline void meet(World& world, StoreLine& news, double seconds) try {
  StoreJoin here{world.rank == 0 ? new_job() : 0, ::getpid(), world.restarts, {}};
  ::gethostname(here.host, sizeof here.host - 1);
  std::vector<StoreJoin> all(static_cast<std::size_t>(world.size));
  std::vector<int> everybody(all.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  auto const take = [&](Store::Part part) {
    all[static_cast<std::size_t>(part.rank)] = from_store<StoreJoin>(part.bytes);
  };
  auto const ask = [&] { return world.store->missing("come", everybody, [] { return false; }); };
  world.store->contribute("come", store_bytes(here), world.size);
  std::optional<StoreLine::Message> early;
  for (auto const deadline = deadline_in(seconds); !world.store->gathered("come", take);) {
    if (early = news.next(); early) {
      if (world.store->gathered("come", take)) break;  // the last rank arrived just before
      throw gone_early(*early);
    }
    pollfd polled[]{{world.store->descriptor(), POLLIN, 0}, {news.descriptor(), POLLIN, 0}};
    if (::poll(polled, 2, milliseconds_until(deadline)) != 0 || Clock::nanoseconds() < deadline) continue;
    std::string missing;
    for (int const r : ask().value_or(std::vector{0})) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    if (missing.empty()) continue;
    auto const text = "of " + std::to_string(world.size) + " ranks these have not joined within " +
                      std::to_string(static_cast<long>(seconds)) + " s: " + missing + "; were they started?";
    StoreEnd how{2, 0, {}};
    text.copy(how.message, sizeof how.message - 1);
    news.send(StoreCall::ended, {}, store_bytes(how));
    static_cast<void>(ask());  // the server answers after it has passed that on
    throw ConfigError("launch: " + text);
  }
  world.job = all[0].job;
  world.segment = SharedSegment::between_threads(world.size, world.job);
  for (auto const& one : all) world.restarts = std::max(world.restarts, one.restarts);
  for (int r = 0; r < world.size; ++r)
    world.segment->control().join(r, all[static_cast<std::size_t>(r)].pid, all[static_cast<std::size_t>(r)].host);
  if (early) learn(world.segment->control(), world.rank, *early);
} catch (CommunicationError const& error) {
  std::optional<StoreLine::Message> last;  // news that arrived before
  try {
    last = news.next();
  } catch (CommunicationError const&) {
  }
  if (last) throw gone_early(*last);
  throw ConfigError(std::string("launch: rank 0 joined and ended before all ranks had joined (") + error.what() +
                    "); see its own message");
}

/// Runs `train` as one of the ranks that another launcher has started on several hosts. They meet at a store on rank 0,
/// and learn from it which ranks have ended, failed or are lost. Each rank has a control page of its own for this.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the ranks do not meet
inline int run_spread_rank(Environment const& place, Options const& options, std::function<int(World&)> const& train,
                           Lookup variable = {}) {
  auto const point = meeting_point(place, options, variable);
  std::optional<StoreServer> server;
  auto const& limits = options.limits;
  StoreAddress at{.host = point.host,
                  .job = point.run,
                  .rank = place.rank,
                  .size = place.size,
                  .join_seconds = options.join_seconds,
                  .wait_seconds = limits.stall_seconds,
                  .silence_seconds = limits.silence_seconds};
  auto on = point;
  if (place.rank == 0) {
    open_store(server, point, at);
    at.host = "localhost";
    on.ports = {server->port()};
  }
  auto calls = find_store(at, on);
  at.port = calls.address().port;
  auto world = placed_world(place, options, Engine::store);
  world.store = std::make_shared<Store>(std::move(calls));
  StoreLine line(at, StoreLineKind::news);
  meet(world, line, options.join_seconds);
  int code = 1;
  {
    bool const leads = place.local_rank == 0 || (place.local_rank == 1 && place.rank == 1);  // on rank 0's host
    RankWatch watch(world.segment->control(), place.rank, {}, options, &line, leads);
    world.stop_request = watch.request();
    code = rank_main(world, train);
    watch.report();  // while rank 0 still waits for this rank's end
    watch.tell_end();
    world.store.reset();
    if (server) {
      watch.wait_for_ends([&] { return server->wait_for_ends(0.05); });
      watch.hear_all();
      watch.report();
    }
  }
  return code;
}

}}}  // namespace lockstep::launch::detail
