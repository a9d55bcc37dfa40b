// SPDX-License-Identifier: Apache-2.0
// Compile cost of our umbrella header, of README's program and of a trainer, header-only and linked, next to PyTorch's
// header and README's program with LibTorch and dlib: processor seconds and peak memory of the compiler. The
// compilations alternate, so that all see the same machine.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
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
  auto const torch = torch_flags();
  bool const has_dlib = fs::exists("/usr/include/dlib/dnn.h"), has_app = fs::exists("/usr/include/CLI/CLI.hpp");
  if (!torch) std::puts("skipped: no torch/torch.h; LOCKSTEP_PEER_PYTHON may name a Python with torch");
  if (!has_dlib) std::puts("skipped: no dlib/dnn.h (Debian: libdlib-dev)");
  auto const folder = fs::temp_directory_path() / ("lockstep_include_cost_" + std::to_string(getpid()));
  fs::create_directory(folder);
  auto const object = folder / "object.o";
  std::string const own = "-pthread -ffp-contract=off -I" LOCKSTEP_SOURCE_DIR "/include";
  std::string const linked = own + " -DLOCKSTEP_COMPILED", peers = LOCKSTEP_SOURCE_DIR "/benchmarks/peers/";
  Ratios ratios("include_cost");

  /// Reports how many times as much as the first build each of the others takes.
  struct Build {
    std::string name;
    fs::path source;
    std::string flags;
  };
  auto const compare = [&](std::string const& what, int rounds, std::vector<Build> const& builds) {
    std::vector<std::vector<double>> seconds(builds.size()), megabytes(builds.size());
    for (int round = 0; round < rounds; ++round) {
      Cost const first = cost_of(compile(builds[0].source, object, builds[0].flags));
      for (std::size_t i = 1; i < builds.size(); ++i) {
        Cost const other = cost_of(compile(builds[i].source, object, builds[i].flags));
        seconds[i].push_back(other.seconds / first.seconds);
        megabytes[i].push_back(other.megabytes / first.megabytes);
      }
    }
    auto const says = std::to_string(rounds) + " compilations of either";
    for (std::size_t i = 1; i < builds.size(); ++i) {
      ratios.report(what + ", seconds", builds[i].name, Spread::of(seconds[i]), says + ", processor time");
      ratios.report(what + ", peak memory", builds[i].name, Spread::of(megabytes[i]), says);
    }
  };
  if (torch)
    compare("umbrella", 5,
            {{"", including(folder, "lockstep/lockstep.hpp"), own},
             {"pytorch", including(folder, "torch/torch.h"), *torch}});
  auto const points = program_of_readme(folder);
  std::vector<Build> others;
  if (torch) others.push_back({"pytorch", peers + "points.cpp", *torch});
  if (has_dlib) others.push_back({"dlib", peers + "points_dlib.cpp", ""});
  for (auto const& [what, flags] : {std::pair{"README's program", own}, {"README's program, linked", linked}}) {
    std::vector<Build> builds{{"", points, flags}};
    builds.insert(builds.end(), others.begin(), others.end());
    if (builds.size() > 1) compare(what, 3, builds);
  }
  if (has_app) {
    fs::path const trainer = LOCKSTEP_SOURCE_DIR "/examples/text_classification.cpp";
    compare("text_classification, linked", 3, {{"", trainer, linked}, {"header-only", trainer, own}});
  }
  fs::remove_all(folder);
}
