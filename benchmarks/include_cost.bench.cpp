// SPDX-License-Identifier: Apache-2.0
// Compile cost of a translation unit with our umbrella header, with PyTorch's, and of a small complete trainer:
// processor seconds and peak memory of the compiler. The compilations alternate, so that both see the same machine.
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

/// Runs a shell command; returns the resources that the command and its children used.
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

/// Returns the compiler's flags for torch/torch.h of the peers' Python, or of the system, or an empty string.
std::optional<std::string> torch_flags() {
  for (std::string const& root : {torch_package() + "/include", std::string("/usr/include")}) {
    auto const api = root + "/torch/csrc/api/include";
    if (fs::exists(api + "/torch/torch.h")) return "-I" + root + " -I" + api;
  }
  return std::nullopt;
}

std::string compile(fs::path const& source, fs::path const& object, std::string const& flags) {
  return std::string(LOCKSTEP_COMPILER) + " -std=c++20 -O2 " + flags + " -c " + source.string() + " -o " +
         object.string();
}

/// A translation unit that includes only this header.
fs::path including(fs::path const& folder, std::string const& header) {
  auto const source = folder / (header.substr(0, header.find('/')) + ".cpp");
  std::ofstream(source) << "#include <" << header << ">\nint main() {}\n";
  return source;
}

/// The first program of README.
fs::path program_of_readme(fs::path const& folder) {
  std::ifstream readme(LOCKSTEP_SOURCE_DIR "/README.md");
  auto const source = folder / "points.cpp";
  std::ofstream program(source);
  bool inside = false;
  for (std::string line; std::getline(readme, line) && !(inside && line == "```"); inside = inside || line == "```cpp")
    if (inside) program << line << '\n';
  if (!inside) throw std::runtime_error("README.md has no block of C++");
  return source;
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
  auto const object = folder / "object.o";
  Ratios ratios("include_cost");
  auto const compare = [&](std::string const& what, int rounds, fs::path const& ours, fs::path const& theirs) {
    auto const says = std::to_string(rounds) + " compilations of either";
    std::vector<double> faster, smaller;
    for (int round = 0; round < rounds; ++round) {
      auto const us = cost_of(compile(ours, object, "-I" LOCKSTEP_SOURCE_DIR "/include")),
                 them = cost_of(compile(theirs, object, *flags));
      faster.push_back(them.seconds / us.seconds);
      smaller.push_back(them.megabytes / us.megabytes);
    }
    ratios.report(what + ", seconds", "pytorch", Spread::of(faster), says + ", processor time");
    ratios.report(what + ", peak memory", "pytorch", Spread::of(smaller), says);
  };
  compare("umbrella", 5, including(folder, "lockstep/lockstep.hpp"), including(folder, "torch/torch.h"));
  compare("README's program", 3, program_of_readme(folder), LOCKSTEP_SOURCE_DIR "/benchmarks/peers/points.cpp");
  fs::remove_all(folder);
}
