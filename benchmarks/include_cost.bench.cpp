// SPDX-License-Identifier: Apache-2.0
// What a translation unit pays for our umbrella, and for that of PyTorch: processor seconds and peak memory of the
// compiler. The compilations alternate, so that both see the same machine.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ratios.hpp>
#include <torch_package.hpp>

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

/// The compiler's flags for torch/torch.h of the peers' Python, or of the system, or nothing where there is none.
std::optional<std::string> torch_flags() {
  for (std::string const& root : {torch_package() + "/include", std::string("/usr/include")}) {
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
