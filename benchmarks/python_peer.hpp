// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <peer.hpp>

namespace lockstep_bench {

/// The Python that runs the peers: the one that LOCKSTEP_PEER_PYTHON names, or python3.
inline std::string python() {
  auto const* named = std::getenv("LOCKSTEP_PEER_PYTHON");
  return named != nullptr ? named : "python3";
}

/// Starts peers/<script>, which works for as many seconds as it is told and answers with the rate it reached; empty,
/// and a line on standard output, where there is no PyTorch.
inline std::optional<Peer> python_peer(std::string const& script, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {python(), LOCKSTEP_SOURCE_DIR "/benchmarks/peers/" + script});
  auto peer = Peer::start(arguments);
  if (!peer)
    std::printf("skipped: %s does not run under %s; LOCKSTEP_PEER_PYTHON may name a Python with torch\n",
                script.c_str(), python().c_str());
  return peer;
}

}  // namespace lockstep_bench
