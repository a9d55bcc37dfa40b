// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <peer.hpp>

namespace lockstep_bench {

/// The Python that runs the peers: LOCKSTEP_PEER_PYTHON, or python3.
inline std::string python() {
  auto const* named = std::getenv("LOCKSTEP_PEER_PYTHON");
  return named != nullptr ? named : "python3";
}

/// Environment for PyTorch's best performance: on processors of any vendor its MKL uses its kernels for Intel's.
/// LOCKSTEP_STOCK_MKL leaves the default.
inline std::vector<std::string> python_command() {
  if (std::getenv("LOCKSTEP_STOCK_MKL") != nullptr) return {python()};
  return {"env", "LD_PRELOAD=" LOCKSTEP_MKL_VENDOR, python()};
}

/// Starts peers/<script>, which works for the requested number of seconds and answers with its rate. Without PyTorch it
/// prints a line and returns an empty object.
inline std::optional<Peer> python_peer(std::string const& script, std::vector<std::string> const& arguments) {
  auto command = python_command();
  command.push_back(LOCKSTEP_SOURCE_DIR "/benchmarks/peers/" + script);
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto peer = Peer::start(std::move(command));
  if (!peer)
    std::printf("skipped: %s does not run under %s; LOCKSTEP_PEER_PYTHON may name a Python with torch\n",
                script.c_str(), python().c_str());
  return peer;
}

}  // namespace lockstep_bench
