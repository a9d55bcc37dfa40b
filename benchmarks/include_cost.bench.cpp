// SPDX-License-Identifier: Apache-2.0
// Compile cost of our umbrella header, of README's program and of a trainer, header-only and linked, next to PyTorch's
// header and README's program with LibTorch and dlib: processor seconds and peak memory of the compiler.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <suite.hpp>
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
    if (fs::exists(api + "/torch/torch.h")) return "-I'" + root + "' -I'" + api + "'";
  }
  return std::nullopt;
}

std::string compile(fs::path const& source, fs::path const& object, std::string const& flags) {
  return std::string(LOCKSTEP_COMPILER) + " -std=c++20 -O2 " + flags + " -c '" + source.string() + "' -o '" +
         object.string() + "'";
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

/// A temporary folder for sources and an object file.
class Folder {
 public:
  Folder() { fs::create_directory(path_); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  [[nodiscard]] fs::path const& path() const noexcept { return path_; }

 private:
  fs::path path_ = fs::temp_directory_path() / ("lockstep_include_cost_" + std::to_string(getpid()));
};

/// Registers a compilation: its processor time, and the compiler's peak memory. `source` gives a file in a folder;
/// `flags` are missing if the other library is.
void add_compilation(std::string const& name, Shared<Folder> const& folder,
                     std::function<fs::path(fs::path const&)> const& source,
                     std::function<std::optional<std::string>()> const& flags, std::string const& missing = {}) {
  add(name,
      [=](benchmark::State& state) {
        auto const with = flags();
        if (!with) return skip(state, missing);
        double megabytes = 0;
        for (auto _ : state) {
          auto const cost = cost_of(compile(source(folder->path()), folder->path() / "object.o", *with));
          state.SetIterationTime(cost.seconds);
          megabytes = std::max(megabytes, cost.megabytes);
        }
        state.counters["peak_bytes"] = megabytes * 1024 * 1024;
      })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_benchmarks() {
  std::string const own = "-pthread -ffp-contract=off -I'" LOCKSTEP_SOURCE_DIR "/include'";
  std::string const linked = own + " -DLOCKSTEP_COMPILED", peers = LOCKSTEP_BENCHMARKS "/peers/";
  auto const with = [](std::string const& flags) { return [flags] { return std::optional(flags); }; };
  auto const header = [](std::string const& name) {
    return [name](fs::path const& folder) { return including(folder, name); };
  };
  auto const file = [](std::string const& path) { return [path](fs::path const&) { return fs::path(path); }; };
  std::string const no_torch = "no torch/torch.h; LOCKSTEP_PEER_PYTHON may name a Python with torch";
  Shared const folder([] { return Folder(); });
  add_compilation("include_cost/umbrella", folder, header("lockstep/lockstep.hpp"), with(own));
  add_compilation("include_cost/umbrella/peer:pytorch", folder, header("torch/torch.h"), torch_flags, no_torch);
  for (auto const& [way, flags] : {std::pair{"header_only", own}, std::pair{"linked", linked}}) {
    auto const name = std::string("include_cost/readme_program/") + way;
    add_compilation(name, folder, program_of_readme, with(flags));
    add_compilation(name + "/peer:pytorch", folder, file(peers + "points.cpp"), torch_flags, no_torch);
    add_compilation(
        name + "/peer:dlib", folder, file(peers + "points_dlib.cpp"),
        [] { return fs::exists("/usr/include/dlib/dnn.h") ? std::optional<std::string>("") : std::nullopt; },
        "no dlib/dnn.h (Debian: libdlib-dev)");
  }
  if (!fs::exists("/usr/include/CLI/CLI.hpp")) return;
  auto const trainer = file(LOCKSTEP_SOURCE_DIR "/examples/text_classification.cpp");
  add_compilation("include_cost/text_classification/linked", folder, trainer, with(linked));
  add_compilation("include_cost/text_classification/linked/peer:header_only", folder, trainer, with(own));
}
