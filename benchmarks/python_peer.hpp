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

/// The Python that runs the peers: the one that LOCKSTEP_PEER_PYTHON names, or python3.
inline std::string python() {
  auto const* named = std::getenv("LOCKSTEP_PEER_PYTHON");
  return named != nullptr ? named : "python3";
}

/// How PyTorch is started at its best: on processors of any vendor its MKL takes the products that it has for Intel's.
/// With LOCKSTEP_STOCK_MKL it is left as it comes.
inline std::vector<std::string> python_command() {
  if (std::getenv("LOCKSTEP_STOCK_MKL") != nullptr) return {python()};
  return {"env", "LD_PRELOAD=" LOCKSTEP_MKL_VENDOR, python()};
}

/// Starts peers/<script>, which works for as many seconds as it is told and answers with the rate it reached; empty,
/// and a line on standard output, where there is no PyTorch.
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
