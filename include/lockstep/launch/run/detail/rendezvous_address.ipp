// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rendezvous_address.hpp>

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

}}}  // namespace lockstep::launch::detail
