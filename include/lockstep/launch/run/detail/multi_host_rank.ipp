// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/multi_host_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string first_slurm_host(std::string_view list) {
  std::string out;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      out += list[i];
      continue;
    }
    auto const end = list.find(']', i);
    auto const numbers = list.substr(i + 1, end == std::string_view::npos ? end : end - i - 1);
    out += numbers.substr(0, numbers.find_first_of("-,"));
    i = end == std::string_view::npos ? list.size() : end;
  }
  return out;
}

LOCKSTEP_INLINE RendezvousAddress rendezvous_address(Environment const& place, Options const& options,
                                                     Lookup variable) {
  auto const given = [&](char const* name) {
    auto const* const text = variable(name);
    return std::string(text ? text : "");
  };
  RendezvousAddress out;
  out.host = options.master_address;
  if (out.host.empty()) out.host = given("MASTER_ADDR");
  if (out.host.empty()) out.host = first_slurm_host(given("SLURM_STEP_NODELIST"));
  if (out.host.empty())
    throw ConfigError(std::string("launch: ") + name(place.launcher) + " has started " + std::to_string(place.size) +
                      " ranks (" + place.variables +
                      ") on several hosts, but rank 0's host is unknown; set MASTER_ADDR to its name "
                      "for all of them (Open MPI: mpirun -x MASTER_ADDR=HOST), or use --master-addr HOST");
  auto port = options.master_port;
  bool const taken = given("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (port == 0 && !taken && !given("MASTER_PORT").empty())
    port = static_cast<std::uint16_t>(
        parse_variable("MASTER_PORT", given("MASTER_PORT"), 1, 65535, "; it is a port of the first rank's host"));
  auto const key = launcher_key(place, variable) + " at " + out.host + ":" + std::to_string(port) + " " +
                   given("MASTER_PORT") + " size=" + std::to_string(place.size);
  out.run = mix(std::string_view(key));
  constexpr std::uint64_t least = 16384, most = 32768, tries = 4;
  if (port != 0)
    out.ports = {port};
  else
    for (std::uint64_t i = 0; i < tries; ++i)
      out.ports.push_back(static_cast<std::uint16_t>(least + mix(out.run, i) % (most - least)));
  return out;
}

LOCKSTEP_INLINE void protect(RendezvousAddress& address, std::string const& secret, Environment const& place,
                             Options const& options) {
  if (!secret.empty()) return;
  if (place.one_host()) {
    address.local_name = "lockstep-store-" + std::to_string(::geteuid()) + "-" + std::to_string(address.run);
    address.ports = {0};
    return;
  }
  std::string const remedy =
      "; give all ranks the same LOCKSTEP_SECRET_FILE or LOCKSTEP_SECRET (docs/how-to/launch.md, Secret)";
  if (options.require_secret)
    throw ConfigError("launch: --require-secret: " + std::to_string(place.size) +
                      " ranks on several hosts have no secret" + remedy);
  if (options.warn && place.rank == 0)
    options.warn("launch: the ranks on several hosts have no secret, so every program that reaches " + address.host +
                 " can join this run, change its results or end it" + remedy);
}

LOCKSTEP_INLINE void open_store(std::optional<StoreServer>& server, RendezvousAddress const& address,
                                StoreAddress const& at) {
  for (auto const port : address.ports) {
    try {
      server.emplace(StoreServer::Options{.job = at.job,
                                          .size = at.size,
                                          .port = port,
                                          .silence_seconds = at.silence_seconds,
                                          .host = address.host,
                                          .local_name = address.local_name,
                                          .secret = at.secret});
      return;
    } catch (ConfigError const&) {
      if (port == address.ports.back()) throw;
    }
  }
}

LOCKSTEP_INLINE StoreConnection connect_to_store(StoreAddress at, RendezvousAddress const& address) {
  auto const deadline = deadline_in(at.join_seconds);
  at.join_seconds = 0;
  at.local_name = address.local_name;
  std::string refusal;
  // At first a silent program on one of the ports must not keep this rank from the others.
  for (double challenge_seconds = 0.25;; challenge_seconds = std::min(2 * challenge_seconds, max_answer_seconds)) {
    for (auto const port : address.ports) {
      at.port = port;
      try {
        return StoreConnection(at, StoreConnectionKind::requests, deadline, challenge_seconds);
      } catch (Error const& error) {  // no server yet, another run, or no store
        if (dynamic_cast<StoreRefusal const*>(&error)) refusal = error.what();
        if (Clock::nanoseconds() >= deadline)
          throw ConfigError("launch: rank 0 was not found on " + at.host + ": " +
                            (refusal.empty() ? error.what() : refusal));
      }
    }
    ::usleep(50'000);
  }
}

LOCKSTEP_INLINE ConfigError ended_early(StoreConnection::Message const& notification) {
  auto const how = from_bytes<RankEnd>(notification.value);
  bool const has_message = notification.type == StoreReply::rank_ended && how.message[0] != '\0';
  return ConfigError("launch: rank " + std::to_string(notification.rank) +
                     " joined and ended before all ranks had joined" +
                     (has_message ? ": " + peer_text(how.message, max_message_bytes) : "; see its own message"));
}

LOCKSTEP_INLINE int run_multi_host_rank(Environment const& place, Options const& options,
                                        std::function<int(World&)> const& train, Lookup variable) {
  auto const deadline = deadline_in(options.join_seconds);
  auto const seconds_left = [&] {
    return deadline == no_deadline ? options.join_seconds
                                   : 1e-9 * static_cast<double>(std::max<Deadline>(deadline - Clock::nanoseconds(), 0));
  };
  auto address = rendezvous_address(place, options, variable);
  auto const secret = read_secret(variable);
  protect(address, secret, place, options);
  std::optional<StoreServer> server;
  auto const& limits = options.limits;
  StoreAddress at{.host = address.host,
                  .job = address.run,
                  .rank = place.rank,
                  .size = place.size,
                  .join_seconds = options.join_seconds,
                  .wait_seconds = limits.stall_seconds,
                  .silence_seconds = limits.silence_seconds,
                  .local_name = address.local_name,
                  .secret = secret};
  auto reachable = address;
  if (place.rank == 0) {
    open_store(server, address, at);
    at.host = server->host();
    reachable.ports = {server->port()};
  }
  auto requests = connect_to_store(at, reachable);
  at.port = requests.address().port;
  auto world = launched_world(place, options, Engine::store);
  world.store = std::make_shared<Store>(std::move(requests));
  at.join_seconds = seconds_left();
  StoreConnection notifications(at, StoreConnectionKind::notifications);
  rendezvous(world, notifications, options.join_seconds, deadline);
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
