// SPDX-License-Identifier: Apache-2.0
// What a translation unit pays for our umbrella, and for that of PyTorch: processor seconds and peak memory of the
// compiler. The compilations alternate, so that both see the same machine.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <python_peer.hpp>
#include <ratios.hpp>

namespace {

namespace fs = std::filesystem;
using namespace lockstep_bench;

struct Cost {
  double seconds;
  double megabytes;
};

double in_seconds(timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

/// Runs a shell command; what the command and its children took.
Cost cost_of(std::string const& command) {
  pid_t const child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
    throw std::runtime_error("failed: " + command);
  return {in_seconds(used.ru_utime) + in_seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1024};
}

std::string output_of(std::string const& command) {
  std::string out;
  if (std::FILE* const pipe = popen(command.c_str(), "r")) {
    std::array<char, 512> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), pipe)) out += part.data();
    pclose(pipe);
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

/// The compiler's flags for torch/torch.h of the peers' Python, or nothing where it has no PyTorch.
std::optional<std::string> torch_flags() {
  std::string const spec = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])";
  auto const package = output_of(python() + " -c \"" + spec + "\" 2>/dev/null");
  for (std::string const& root : {package + "/include", std::string("/usr/include")}) {
    auto const api = root + "/torch/csrc/api/include";
    if (fs::exists(api + "/torch/torch.h")) return "-I" + root + " -I" + api;
  }
  return std::nullopt;
}

/// A command that compiles a translation unit which includes this header and nothing else.
std::string compile(fs::path const& folder, std::string const& header, std::string const& flags) {
  auto const source = folder / (header.substr(0, header.find('/')) + ".cpp");
  std::ofstream(source) << "#include <" << header << ">\nint main() {}\n";
  return std::string(LOCKSTEP_COMPILER) + " -std=c++20 -O2 " + flags + " -c " + source.string() + " -o " +
         source.string() + ".o";
}

}  // namespace

int main() {
  auto const flags = torch_flags();
  if (!flags) {
    std::puts("skipped: include_cost: no torch/torch.h; LOCKSTEP_PEER_PYTHON may name a Python with torch");
    return 0;
  }
  auto const folder = fs::temp_directory_path() / ("lockstep_include_cost_" + std::to_string(getpid()));
  fs::create_directory(folder);
  auto const ours = compile(folder, "lockstep/lockstep.hpp", "-I" LOCKSTEP_SOURCE_DIR "/include");
  auto const theirs = compile(folder, "torch/torch.h", *flags);

  constexpr int rounds = 5;
  std::vector<double> faster, smaller;
  for (int round = 0; round < rounds; ++round) {
    auto const us = cost_of(ours), them = cost_of(theirs);
    faster.push_back(them.seconds / us.seconds);
    smaller.push_back(them.megabytes / us.megabytes);
  }
  fs::remove_all(folder);
  Ratios ratios("include_cost");
  ratios.report("umbrella, seconds", "pytorch", Spread::of(faster), "5 compilations of either, processor time");
  ratios.report("umbrella, peak memory", "pytorch", Spread::of(smaller), "5 compilations of either");
}
