// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <python_peer.hpp>

namespace lockstep_bench {

/// The folder of the peers' PyTorch, with C++ headers in `include` and libraries in `lib`; empty without PyTorch.
inline std::string torch_package() {
  std::string const find = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])";
  std::string out;
  if (std::FILE* const pipe = popen(("'" + python() + "' -c \"" + find + "\" 2>/dev/null").c_str(), "r")) {
    std::array<char, 512> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), pipe)) out += part.data();
    pclose(pipe);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return std::filesystem::exists(out + "/include/torch/csrc/api/include/torch/torch.h") ? out : std::string();
}

}  // namespace lockstep_bench
