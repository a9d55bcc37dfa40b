// SPDX-License-Identifier: Apache-2.0
// report DIR [flags]: prints the bottleneck of a run that was saved with --save-dir, and predicts its speed on more
// ranks, over a network that the flags describe.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/app/link_flags.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/scaling/fabric.hpp>
#include <lockstep/scaling/machine_ceiling.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/scaling_report.hpp>

using namespace lockstep;

namespace {

struct Flags {
  std::vector<Index> ranks = scaling::ScalingReport::powers_of_two();
  std::optional<double> alpha_us, beta_gb_s;
  scaling::Link link = scaling::Link::automatic;
  scaling::AllReduce all_reduce = scaling::AllReduce::fastest;
  bool this_machine = false;

  explicit Flags(app::Command& command) {
    command.add("--ranks", "Numbers of ranks to predict, as in 2,16,100 (default 2,4 … 1024)",
                [this](auto const& name, auto const& text) {
                  ranks = app::detail::parse_numbers<Index>(name, text, 2, 1 << 20);
                  std::sort(ranks.begin(), ranks.end());
                });
    app::add_link(command, link, alpha_us, beta_gb_s);
    command.add("--all-reduce", all_reduce,
                {{"fastest", scaling::AllReduce::fastest},
                 {"ring", scaling::AllReduce::ring},
                 {"tree", scaling::AllReduce::tree}},
                "All-reduce algorithm in predictions; default fastest");
    command.add("--this-machine", this_machine,
                "Predict ranks on the cores of this machine, too; measures for 3 s what they share, once per machine");
  }
  [[nodiscard]] scaling::Fabric fabric(bool on_gpus) const {
    auto fabric = scaling::Fabric::of(link, on_gpus, alpha_us, beta_gb_s);
    fabric.all_reduce = all_reduce;
    return fabric;
  }
};

void print_run(scaling::SavedRun const& saved) {
  auto const profile = saved.profile();
  saved.read([&](json::Value const& run) {
    std::printf("%s: %s of %s, %s, ranks %lld, devices %lld, threads %lld\n", saved.name().c_str(),
                run.at("parallel").string().c_str(), run.at("example").string().c_str(),
                run.at("backend").string().c_str(), static_cast<long long>(run.at("world_size").integer()),
                static_cast<long long>(run.at("devices").integer()), static_cast<long long>(profile.threads));
    std::printf(
        "measured: %.1f samples/s; a step of %lld takes %.1f ms: compute %.1f, communication not hidden %.1f, "
        "optimizer %.1f, waiting for data %.1f\n",
        profile.samples_per_second, std::llround(profile.samples()), profile.step_ms(),
        profile.forward_ms + profile.backward_ms + profile.pass_ms, profile.communication_ms, profile.optimizer_ms,
        profile.data_wait_ms);
    std::printf("%s\n\n", run.at("verdict").at("says").string().c_str());
    return 0;
  });
}

/// Prints what ranks on this machine could give at best, up to one per core and twice as many.
void print_ceiling(scaling::Workload const& work) {
  auto const ceiling = scaling::MachineCeiling::cached(app::cache_folder());
  std::printf(
      "\npredicted for ranks of one thread on the %lld cores of this machine, without communication%s\n%10s %13s "
      "%11s\n",
      static_cast<long long>(ceiling.cores),
      ceiling.busy ? "; other programs used them during the measurement, so it is rough" : "", "ranks", "samples/s",
      "efficiency");
  for (Index n = 2; n <= std::max<Index>(2, 2 * ceiling.cores); n *= 2) {
    auto const predicted = predict(work, n, parallel::CollectiveCost{}, ceiling);
    std::printf("%10lld %13.1f %9.0f %%\n", static_cast<long long>(n), predicted.samples_per_second,
                100 * predicted.efficiency);
  }
}

int report(int argc, char** argv) {
  app::Command command("report DIR [flags]: the bottleneck of a saved run, and the predicted speed of more ranks");
  Flags flags(command);
  bool const named = argc > 1 && argv[1][0] != '-';
  if (!command.parse(named ? argc - 1 : argc, named ? argv + 1 : argv)) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (!named) throw ConfigError("needs the directory of a run before all flags: report runs/quickstart/single");
  scaling::SavedRun const saved(argv[1]);
  auto const workload = saved.workload();
  print_run(saved);
  bool const on_gpus = saved.read([](json::Value const& run) { return run.at("backend").string() == CudaSpace::name; });
  std::fputs(scaling::ScalingReport(workload, flags.fabric(on_gpus), flags.ranks).text().c_str(), stdout);
  if (flags.this_machine) print_ceiling(workload);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("report", [&] { return report(argc, argv); });
}
