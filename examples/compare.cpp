// SPDX-License-Identifier: Apache-2.0
// compare DIR DIR…: compares runs that were saved with --save-dir; the first one is the baseline. Prints speeds,
// whether results are equal, and the bottleneck on this machine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/scaling/compared_run.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/speed_up.hpp>

using namespace lockstep;

namespace {

constexpr char help[] =
    "compare DIR DIR…: compares runs that were saved with --save-dir; the first one is the baseline\n\n"
    "Prints speed, speed-up and accuracy of each run, whether runs agree, and what bounds the speed-up.\n"
    "The exit code is 1 if runs disagree that should agree.";

void print_table(std::vector<scaling::ComparedRun> const& runs) {
  std::printf("%-12s %5s %7s %7s %10s %9s %10s %9s %9s  %s\n", "run", "ranks", "devices", "threads", "samples/s",
              "speed-up", "efficiency", "accuracy", "eval loss", "parameters");
  for (auto const& run : runs) {
    scaling::SpeedUp const speed_up(runs[0].profile, run.profile);
    bool const counted = run.metric == "accuracy" && !std::isnan(run.metric_value);
    auto const accuracy = counted ? scaling::detail::rounded(run.metric_value, 4) : "-";
    std::printf("%-12s %5lld %7lld %7lld %10.1f %9.2f %8.0f %% %9s %9.4f  %.12s\n", run.name.c_str(),
                static_cast<long long>(run.ranks), static_cast<long long>(run.devices),
                static_cast<long long>(run.profile.threads), run.profile.samples_per_second, speed_up.factor(),
                100 * speed_up.efficiency(), accuracy.c_str(), run.loss, run.parameters_sha256.c_str());
  }
}

int compare(std::vector<std::string> const& directories) {
  std::vector<scaling::ComparedRun> runs;
  runs.reserve(directories.size());
  for (auto const& directory : directories) runs.push_back(scaling::ComparedRun::read(directory));
  print_table(runs);
  std::printf("\n");

  bool all_agree = true;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto const& other = scaling::ComparedRun::reference_run(runs, i);
    std::printf("%s\n", runs[i].agreement_summary(other).c_str());
    all_agree &= runs[i].agreement(other) != scaling::Agreement::none;
  }

  auto const most = std::max_element(runs.begin(), runs.end(), [](auto const& a, auto const& b) {
    return a.profile.samples_per_second < b.profile.samples_per_second;
  });
  auto const& fastest = most == runs.begin() && runs.size() > 1 ? runs[1] : *most;
  if (runs.size() > 1)
    std::printf("%s: %s\n", fastest.name.c_str(), scaling::SpeedUp(runs[0].profile, fastest.profile).summary().c_str());
  return all_agree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("compare", [&] {
    std::vector<std::string> const directories(argv + 1, argv + argc);
    if (directories.size() == 1 && (directories[0] == "--help" || directories[0] == "-h")) {
      std::puts(help);
      return 0;
    }
    if (directories.empty() || directories[0].starts_with("-"))
      throw ConfigError(
          "needs the directories of runs, the baseline first: compare runs/quickstart/single runs/quickstart/ddp");
    return compare(directories);
  });
}
