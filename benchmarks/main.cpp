// SPDX-License-Identifier: Apache-2.0
// The main function of every benchmark program. It differs from Google Benchmark's in four points:
// - The context names the processor, the cores that share a cache, the compiler, the libraries, and the round trip of a
//   cache line.
// - A benchmark, its engines and its peers run in one group, so that --benchmark_enable_random_interleaving shuffles
//   only runs that are compared, and these stay close in time.
// - The exit code is 1 if nothing was measured or a benchmark failed. Skipped benchmarks are no failures.
// - --benchmark_min_time takes 1x and 0.5s also with Google Benchmark before 1.8.
#include <benchmark/benchmark.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <peer.hpp>
#include <probe.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep_bench;

namespace {

std::string first_line_of(std::string const& command) {
  std::string out;
  if (std::FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    std::array<char, 512> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), pipe)) out += part.data();
    pclose(pipe);
  }
  return out.substr(0, out.find('\n'));
}

/// The value of the first line of a file that begins with `key`, or its first line without a key.
std::string line_of(std::string const& path, std::string const& key = {}) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return key.empty() ? line : line.substr(line.find(':') + 2);
  return {};
}

/// Processors that share the largest cache of the first one.
std::string cores_of_one_cache() {
  std::string shared;
  for (int index = 0;; ++index) {
    auto const line = line_of("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/shared_cpu_list");
    if (line.empty()) return shared;
    shared = line;
  }
}

std::string or_none(std::string const& text) { return text.empty() ? "none" : text; }

/// The first of these flags of Google Benchmark that is given replaces the library's handling.
struct Arguments {
  std::vector<std::string> rest;
  std::string out, out_format = "json", format = "console";
  bool list = false, display_aggregates_only = false;
  long iterations = 0;  ///< of --benchmark_min_time=Nx, where the library does not know it

  Arguments(int argc, char** argv) {
    for (int i = 0; i < argc; ++i) {
      std::string_view const argument = argv[i];
      auto const value_of = [&](std::string_view flag) -> char const* {
        return argument.starts_with(flag) ? argv[i] + flag.size() : nullptr;
      };
      if (auto const* path = value_of("--benchmark_out=")) {
        out = path;
        continue;
      }
      if (auto const* name = value_of("--benchmark_out_format=")) {
        out_format = name;
        continue;
      }
      if (auto const* name = value_of("--benchmark_format=")) format = name;
      auto const is_set = [&](std::string_view flag) {
        return argument.starts_with(flag) && !argument.ends_with("=false") && !argument.ends_with("=0");
      };
      list = list || is_set("--benchmark_list_tests");
      if (argument.starts_with("--benchmark_display_aggregates_only")) {
        display_aggregates_only = is_set("--benchmark_display_aggregates_only");
        continue;  // it would apply to the file too, which is written here
      }
      if (auto const* time = value_of("--benchmark_min_time="); time != nullptr && !knows_units<benchmark::State>()) {
        rest.push_back("--benchmark_min_time=" + without_unit(time));
        continue;
      }
      rest.emplace_back(argument);
    }
  }

  /// Has Google Benchmark parse the flags.
  /// @return false if there are others
  bool initialize(std::vector<std::string> const& more = {}) const {
    static std::vector<std::string> all;  // Google Benchmark keeps a pointer to the program's name
    all = rest;
    all.insert(all.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& argument : all) argv.push_back(argument.data());
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    benchmark::Initialize(&argc, argv.data());
    return !benchmark::ReportUnrecognizedArguments(argc, argv.data());
  }

 private:
  /// Google Benchmark 1.8 added SkipWithMessage and the units of --benchmark_min_time.
  template <class State>
  static constexpr bool knows_units() {
    return requires(State & state) { state.SkipWithMessage(std::string()); };
  }
  std::string without_unit(std::string time) {
    if (time.ends_with('s')) time.pop_back();
    if (!time.ends_with('x')) return time;
    iterations = std::atol(time.c_str());
    return "0";  // the first attempt has one iteration, and is enough
  }
};

/// Forwards all runs to a file, and to the console those counters that describe the benchmark. Counts what was
/// measured.
class Reporter : public benchmark::BenchmarkReporter {
 public:
  Reporter(Arguments const& arguments, std::size_t name_width)
      : console_(arguments.format == "console"),
        aggregates_only_(arguments.display_aggregates_only),
        name_width_(name_width),
        display_(benchmark::CreateDefaultDisplayReporter()) {
    if (arguments.out.empty()) return;
    stream_.open(arguments.out);
    if (!stream_) return;
    if (arguments.out_format == "json")
      file_ = std::make_unique<benchmark::JSONReporter>();
    else
      file_ = std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
    file_->SetOutputStream(&stream_);
    file_->SetErrorStream(&std::cerr);
  }

  [[nodiscard]] long measured() const noexcept { return measured_; }
  [[nodiscard]] bool can_write() const { return file_ == nullptr || static_cast<bool>(stream_); }
  [[nodiscard]] bool has_file() const noexcept { return file_ != nullptr; }

  bool ReportContext(Context const& context) override {
    if (began_) return true;
    began_ = true;
    auto wide = context;
    wide.name_field_width = name_width_;
    return display_->ReportContext(wide) && (!file_ || file_->ReportContext(wide));
  }
  void ReportRuns(std::vector<Run> const& runs) override {
    if (file_) file_->ReportRuns(runs);
    std::vector<Run> shown;
    for (auto run : runs) {
      bool const is_run = run.run_type == Run::RT_Iteration, fine = was_measured(run);
      measured_ += is_run && fine ? 1 : 0;
      if (is_run && fine && aggregates_only_ && run.repetitions > 1) continue;
      if (!console_) {
        shown.push_back(std::move(run));
        continue;
      }
      if (!fine) {
        if (run.repetition_index <= 0)
          std::cout << std::left << std::setw(static_cast<int>(name_width_)) << run.benchmark_name() << ' '
                    << reason(run) << '\n';
        continue;
      }
      if (auto const at = run.counters.find(MachineCounters::disturbed);
          is_run && at != run.counters.end() && at->second > 0)
        run.report_label += run.report_label.empty() ? "disturbed" : ", disturbed";
      for (auto const* name : {MachineCounters::round_trip, MachineCounters::disturbed, MachineCounters::started})
        run.counters.erase(name);
      shown.push_back(std::move(run));
    }
    if (!shown.empty()) display_->ReportRuns(shown);
    std::cout.flush();
  }
  void Finalize() override {}  // Google Benchmark calls it after each group

  void end() {
    if (!began_) return;
    display_->Finalize();
    if (file_) file_->Finalize();
    stream_.flush();
  }

 private:
  template <class AnyRun>
  static bool was_measured(AnyRun const& run) {
    if constexpr (requires { run.error_occurred; })
      return !run.error_occurred;
    else
      return run.skipped == decltype(run.skipped){};
  }

  template <class AnyRun>
  static std::string reason(AnyRun const& run) {
    if constexpr (requires { run.error_message; })
      return run.error_message;
    else
      return "skipped: " + run.skip_message;
  }

  bool console_, aggregates_only_, began_ = false;
  std::size_t name_width_;
  long measured_ = 0;
  std::unique_ptr<benchmark::BenchmarkReporter> display_, file_;
  std::ofstream stream_;
};

/// Full names of the benchmarks that the filter selects.
std::vector<std::string> selected(Arguments const& arguments) {
  std::vector<std::string> names;
  if (!arguments.initialize({"--benchmark_list_tests=true"})) return names;
  std::ostringstream out;
  benchmark::ConsoleReporter reporter;
  reporter.SetOutputStream(&out);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::istringstream in(out.str());
  for (std::string name; std::getline(in, name);) names.push_back(name);
  return names;
}

/// A name without its engine, its peer and what Google Benchmark appends.
std::string case_of(std::string const& name) {
  std::string out;
  std::istringstream in(name);
  for (std::string part; std::getline(in, part, '/');) {
    bool left_out = part == "manual_time" || part == "real_time" || part == "process_time";
    for (char const* prefix : {"peer:", "engine:", "iterations:", "repeats:", "min_time:"})
      left_out = left_out || part.starts_with(prefix);
    if (!left_out) out += (out.empty() ? "" : "/") + part;
  }
  return out;
}

/// A regular expression that matches these names only.
std::string matching(std::vector<std::string> const& names) {
  std::string out;
  for (auto const& name : names) {
    out += out.empty() ? "^(" : "|";
    for (char const c : name) {
      if (std::strchr(".+*?()[]{}|^$\\", c) != nullptr) out += '\\';
      out += c;
    }
  }
  return out + ")$";
}

void add_context() {
  auto const probe = Probe::measure();
  char trip[64];
  std::snprintf(trip, sizeof trip, "%.0f ns, %s", probe.round_trip_ns, probe.state());
  benchmark::AddCustomContext("processor", or_none(line_of("/proc/cpuinfo", "model name")));
  benchmark::AddCustomContext("processors_here", std::to_string(processor_numbers().size()));
  benchmark::AddCustomContext("processors_of_one_cache", or_none(cores_of_one_cache()));
  benchmark::AddCustomContext("round_trip_of_a_cache_line", trip);
  benchmark::AddCustomContext("compiler", LOCKSTEP_COMPILER_NAME);
  benchmark::AddCustomContext("blas", or_none(LOCKSTEP_BLAS_NAME));
  benchmark::AddCustomContext("onednn", or_none(LOCKSTEP_ONEDNN_NAME));
  benchmark::AddCustomContext("mpi", or_none(first_line_of("mpirun --version")));
  benchmark::AddCustomContext(
      "pytorch",
      or_none(first_line_of("'" + python() + "' -c 'import importlib.metadata as m; print(m.version(\"torch\"))'")));
}

int run(Arguments const& arguments) {
  register_benchmarks();
  if (arguments.iterations > 1) {
    std::fprintf(stderr, "this Google Benchmark knows only --benchmark_min_time=1x, and times in seconds\n");
    return 1;
  }
  if (arguments.out_format != "json" && arguments.out_format != "console") {
    std::fprintf(stderr, "--benchmark_out_format: json or console, not %s\n", arguments.out_format.c_str());
    return 1;
  }
  if (arguments.list) return arguments.initialize() && benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 1;
  auto const names = selected(arguments);
  if (names.empty()) return 1;  // Google Benchmark stated the reason
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  std::size_t width = 10;
  for (auto const& name : names) {
    width = std::max(width, name.size());
    auto const group = case_of(name);
    auto at = std::find_if(groups.begin(), groups.end(), [&](auto const& one) { return one.first == group; });
    if (at == groups.end()) at = groups.insert(groups.end(), {group, {}});
    at->second.push_back(name);
  }
  if (!arguments.initialize({"--benchmark_list_tests=false"})) return 1;
  Reporter reporter(arguments, width);
  if (!arguments.out.empty() && !reporter.has_file()) {
    std::fprintf(stderr, "--benchmark_out: cannot write %s\n", arguments.out.c_str());
    return 1;
  }
  add_context();
  for (auto const& group : groups) benchmark::RunSpecifiedBenchmarks(&reporter, matching(group.second));
  reporter.end();
  RunningPeers::end();
  benchmark::ClearRegisteredBenchmarks();  // and their temporary files
  if (!reporter.can_write()) {
    std::fprintf(stderr, "--benchmark_out: %s is incomplete\n", arguments.out.c_str());
    return 1;
  }
  if (reporter.measured() == 0) std::fprintf(stderr, "nothing was measured\n");
  if (failures() > 0) std::fprintf(stderr, "%d runs failed\n", failures());
  return reporter.measured() > 0 && failures() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const first = argc > 1 ? argv[1] : "";
  if (constexpr std::string_view flag = "--role="; first.starts_with(flag)) {
    auto const role = Role::all().find(std::string(first.substr(flag.size())));
    if (role == Role::all().end()) {
      std::fprintf(stderr, "%s: no role is called so\n", argv[1]);
      return 2;
    }
    return role->second({argv + 2, argv + argc});
  }
  std::signal(SIGPIPE, SIG_IGN);  // a request to a peer that has ended fails, and the next line reports it
  try {
    return run({argc, argv});
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
