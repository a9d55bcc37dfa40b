// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/spread_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE void open_store(std::optional<StoreServer>& server, MeetingPoint const& point, StoreAddress const& at) {
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

LOCKSTEP_INLINE StoreLine find_store(StoreAddress at, MeetingPoint const& point) {
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

LOCKSTEP_INLINE ConfigError gone_early(StoreLine::Message const& news) {
  auto const how = from_store<StoreEnd>(news.value);
  bool const says = news.what == StoreReply::rank_ended && how.message[0] != '\0';
  return ConfigError("launch: rank " + std::to_string(news.rank) + " joined and ended before all ranks had joined" +
                     (says ? std::string(": ") + how.message : "; see its own message"));
}

LOCKSTEP_INLINE int run_spread_rank(Environment const& place, Options const& options,
                                    std::function<int(World&)> const& train, Lookup variable) {
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
