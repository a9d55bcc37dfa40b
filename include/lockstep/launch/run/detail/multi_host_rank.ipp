// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/multi_host_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE void open_store(std::optional<StoreServer>& server, RendezvousAddress const& address,
                                StoreAddress const& at) {
  for (auto const port : address.ports) {
    try {
      server.emplace(
          StoreServer::Options{.job = at.job, .size = at.size, .port = port, .silence_seconds = at.silence_seconds});
      return;
    } catch (ConfigError const&) {
      if (port == address.ports.back()) throw;
    }
  }
}

LOCKSTEP_INLINE StoreConnection connect_to_store(StoreAddress at, RendezvousAddress const& address) {
  auto const deadline = deadline_in(at.join_seconds);
  at.join_seconds = 0;
  std::string refusal;
  for (;; ::usleep(50'000)) {
    for (auto const port : address.ports) {
      at.port = port;
      try {
        return StoreConnection(at, StoreConnectionKind::requests);
      } catch (Error const& error) {  // no server yet, another run, or no store
        if (dynamic_cast<StoreRefusal const*>(&error)) refusal = error.what();
        if (Clock::nanoseconds() >= deadline)
          throw ConfigError("launch: rank 0 was not found on " + at.host + ": " +
                            (refusal.empty() ? error.what() : refusal));
      }
    }
  }
}

LOCKSTEP_INLINE ConfigError ended_early(StoreConnection::Message const& notification) {
  auto const how = from_bytes<RankEnd>(notification.value);
  bool const has_message = notification.type == StoreReply::rank_ended && how.message[0] != '\0';
  return ConfigError("launch: rank " + std::to_string(notification.rank) +
                     " joined and ended before all ranks had joined" +
                     (has_message ? std::string(": ") + how.message : "; see its own message"));
}

LOCKSTEP_INLINE int run_multi_host_rank(Environment const& place, Options const& options,
                                        std::function<int(World&)> const& train, Lookup variable) {
  auto const address = rendezvous_address(place, options, variable);
  std::optional<StoreServer> server;
  auto const& limits = options.limits;
  StoreAddress at{.host = address.host,
                  .job = address.run,
                  .rank = place.rank,
                  .size = place.size,
                  .join_seconds = options.join_seconds,
                  .wait_seconds = limits.stall_seconds,
                  .silence_seconds = limits.silence_seconds};
  auto reachable = address;
  if (place.rank == 0) {
    open_store(server, address, at);
    at.host = "localhost";
    reachable.ports = {server->port()};
  }
  auto requests = connect_to_store(at, reachable);
  at.port = requests.address().port;
  auto world = launched_world(place, options, Engine::store);
  world.store = std::make_shared<Store>(std::move(requests));
  StoreConnection notifications(at, StoreConnectionKind::notifications);
  rendezvous(world, notifications, options.join_seconds);
  int code = 1;
  {
    bool const reports_for_host =
        place.local_rank == 0 || (place.local_rank == 1 && place.rank == 1);  // on rank 0's host
    RankWatch watch(world.segment->control(), place.rank, {}, options, &notifications, reports_for_host);
    world.stop_request = watch.request();
    code = rank_main(world, train);
    watch.report();  // while rank 0 still waits for this rank's end
    watch.send_end();
    world.store.reset();
    if (server) {
      watch.wait_for_ends([&] { return server->wait_for_ends(0.05); });
      watch.wait_for_notifications();
      watch.report();
    }
  }
  return code;
}

}}}  // namespace lockstep::launch::detail
