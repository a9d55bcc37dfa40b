// SPDX-License-Identifier: Apache-2.0
// What a translation unit pays for our umbrella, and for that of PyTorch: processor seconds and peak memory of the
// compiler. The compilations alternate, so that both see the same machine.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ratios.hpp"

namespace {

namespace fs = std::filesystem;
using lockstep_bench::quantile;

struct Cost {
  double seconds;
  double megabytes;
};

double seconds(timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

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
  return {seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1024};
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

/// The -I flags for torch/torch.h, of the Python package or the system's, or nothing without a PyTorch.
std::optional<std::string> torch_flags() {
  char const* const given = std::getenv("LOCKSTEP_TORCH_INCLUDE");
  std::string const spec = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])";
  std::string const package = given ? "" : output_of("python3 -c \"" + spec + "\" 2>/dev/null");
  for (std::string const& root : {given ? std::string(given) : package + "/include", std::string("/usr/include")}) {
    auto const api = root + "/torch/csrc/api/include";
    if (fs::exists(api + "/torch/torch.h")) return "-I" + root + " -I" + api;
  }
  return std::nullopt;
}

/// The umbrella as a command that compiles one translation unit which includes nothing else.
std::string compile(fs::path const& folder, std::string const& header, std::string const& flags) {
  auto const source = folder / (header.substr(0, header.find('/')) + ".cpp");
  std::ofstream(source) << "#include <" << header << ">\nint main() {}\n";
  return std::string(LOCKSTEP_COMPILER) + " -std=c++20 -O2 " + flags + " -c " + source.string() + " -o " +
         source.string() + ".o";
}

}  // namespace

int main() {
  auto const folder = fs::temp_directory_path() / ("lockstep_include_cost_" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::string const ours = compile(folder, "lockstep/lockstep.hpp", "-I" + std::string(LOCKSTEP_SOURCE_DIR "/include"));
  auto const flags = torch_flags();
  std::string const theirs = flags ? compile(folder, "torch/torch.h", *flags) : "";

  constexpr int rounds = 5;
  std::array<std::vector<double>, 2> seconds, megabytes;
  std::vector<double> faster, smaller;
  for (int round = 0; round < rounds; ++round) {
    std::array<Cost, 2> cost{cost_of(ours), flags ? cost_of(theirs) : Cost{}};
    for (std::size_t i = 0; i < 2; ++i) {
      seconds[i].push_back(cost[i].seconds);
      megabytes[i].push_back(cost[i].megabytes);
    }
    faster.push_back(cost[1].seconds / cost[0].seconds);
    smaller.push_back(cost[1].megabytes / cost[0].megabytes);
  }
  fs::remove_all(folder);

  std::printf("%-24s %8s %8s\n", "include", "seconds", "MiB");
  std::printf("%-24s %8.2f %8.0f\n", "lockstep/lockstep.hpp", quantile(seconds[0], 0.5), quantile(megabytes[0], 0.5));
  if (!flags) {
    std::puts(
        "torch/torch.h            not measured: no PyTorch found (LOCKSTEP_TORCH_INCLUDE names its include folder)");
    return 0;
  }
  std::printf("%-24s %8.2f %8.0f\n", "torch/torch.h", quantile(seconds[1], 0.5), quantile(megabytes[1], 0.5));
  lockstep_bench::add_ratio("include_cost", "umbrella, seconds", "pytorch", faster);
  lockstep_bench::add_ratio("include_cost", "umbrella, peak memory", "pytorch", smaller);
}
