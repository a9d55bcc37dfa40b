// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <functional>
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

/// The command of peers/<script>. `more` gives arguments that are known when the benchmark runs.
inline PeerCommand python_peer(std::string const& script, std::vector<std::string> const& arguments,
                               std::string request = {}, std::function<std::vector<std::string>()> const& more = {}) {
  return {.words =
              [=] {
                auto command = python_command();
                command.push_back(LOCKSTEP_BENCHMARKS "/peers/" + script);
                command.insert(command.end(), arguments.begin(), arguments.end());
                if (more)
                  for (auto& word : more()) command.push_back(std::move(word));
                return command;
              },
          .reason = "peers/" + script + " does not run under " + python() +
                    "; LOCKSTEP_PEER_PYTHON may name a Python with torch",
          .request = std::move(request)};
}

/// A case of peers/kernels.py, PyTorch's kernels on one thread.
inline PeerCommand pytorch_kernel(std::string const& name, std::initializer_list<lockstep::Index> sizes) {
  std::vector<std::string> arguments{name};
  for (auto const size : sizes) arguments.push_back(std::to_string(size));
  return python_peer("kernels.py", arguments);
}

}  // namespace lockstep_bench
