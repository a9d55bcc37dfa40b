// SPDX-License-Identifier: Apache-2.0
// compare DIR DIR…: puts runs side by side that were saved with --save-dir, the first of them the baseline: how fast
// each was, whether they learned the same, and what bounds the speed-up on this machine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/speed_up.hpp>

using namespace lockstep;

namespace {

struct Run {
  std::string name;
  std::string parallel;
  Index ranks, devices, steps;
  Index shards;  // in which each micro-step was summed: runs of equally many have equal bits
  scaling::StepProfile profile;
  double loss;
  std::string accuracy;  // "-" where no evaluation counts it
  std::string parameters_sha256;
  std::map<std::string, std::string> settings;  // that bear on what a run learns, by name
};

// Runs of the same global batches differ by rounding alone. AdamW divides by the root of small second moments, so that
// rounding moves parameters by whole learning rates, back and forth, and the evaluation loss by much less. How much
// less cannot be derived; this is the largest distance that we call agreement.
constexpr double loss_bound = 0.02;

// Of an evaluation: null is one that was no number.
double number(json::Value const& value) { return value.is_null() ? std::nan("") : value.number(); }

// Flags that say where and how a run computes, or what it leaves; the size of its batches shows in its steps.
constexpr std::string_view no_matter =
    " backend batch-size bucket-cap-mb check-replicas-every checkpoint-every config devices engine global-batch-size "
    "host-timeout join-timeout keep-checkpoints local-rank master-addr master-port max-restarts nproc num-workers "
    "parallel predictions prefetch prefetch-factor reproducible resume save-dir shard-optimizer stall-timeout threads "
    "timed-products "
    "trace ";

std::map<std::string, std::string> settings_of(json::Value const& run) {
  std::map<std::string, std::string> all;
  auto const* const settings = run.find("settings");
  if (!settings) return all;
  for (auto const& [name, value] : settings->object())
    if (no_matter.find(" " + std::string(name) + " ") == std::string_view::npos)
      all[name] = json::Writer().value(value).text();
  return all;
}

Run read(std::string const& directory) {
  scaling::SavedRun const saved(directory);
  auto const profile = saved.profile();
  return saved.read([&](json::Value const& json) {
    auto const& final = json.at("final");
    auto const *const reproducible = json.find("reproducible"), *const accuracy = final.find("eval_accuracy");
    return Run{.name = saved.name(),
               .parallel = json.at("parallel").string(),
               .ranks = json.at("world_size").integer(),
               .devices = json.at("devices").integer(),
               .steps = json.at("steps").integer(),
               .shards = reproducible ? reproducible->integer() : profile.shards,
               .profile = profile,
               .loss = number(final.at("eval_loss")),
               .accuracy = accuracy ? scaling::detail::rounded(number(*accuracy), 4) : "-",
               .parameters_sha256 = json.at("parameters_sha256").string(),
               .settings = settings_of(json)};
  });
}

void print_table(std::vector<Run> const& runs) {
  std::printf("%-12s %5s %7s %7s %10s %9s %10s %9s %9s  %s\n", "run", "ranks", "devices", "threads", "samples/s",
              "speed-up", "efficiency", "accuracy", "eval loss", "parameters");
  for (auto const& run : runs) {
    scaling::SpeedUp const speed_up(runs[0].profile, run.profile);
    std::printf("%-12s %5lld %7lld %7lld %10.1f %9.2f %8.0f %% %9s %9.4f  %.12s\n", run.name.c_str(),
                static_cast<long long>(run.ranks), static_cast<long long>(run.devices),
                static_cast<long long>(run.profile.threads), run.profile.samples_per_second, speed_up.factor(),
                100 * speed_up.efficiency(), run.accuracy.c_str(), run.loss, run.parameters_sha256.c_str());
  }
}

bool same_work(Run const& a, Run const& b) {
  return a.profile.effective_batch_size == b.profile.effective_batch_size && a.steps == b.steps;
}

// "lr 0.002 (0.001), dropout 0.2 (not given)": what `run` has otherwise than `other`, and in brackets what that has.
std::string differences(Run const& run, Run const& other) {
  std::string all;
  if (run.settings.empty() || other.settings.empty()) return all;  // left by a version that did not tell
  auto const of = [](Run const& one, std::string const& name) {
    auto const found = one.settings.find(name);
    return found == one.settings.end() ? "not given" : found->second;
  };
  auto names = run.settings;
  names.insert(other.settings.begin(), other.settings.end());
  for (auto const& [name, value] : names)
    if (of(run, name) != of(other, name))
      all += (all.empty() ? "" : ", ") + name + " " + of(run, name) + " (" + of(other, name) + ")";
  return all;
}

// Whether `run` learned what `other` did, and the words for it.
bool agree(Run const& run, Run const& other) {
  auto const pair = run.name + " and " + other.name;
  if (run.parameters_sha256 == other.parameters_sha256) {
    std::printf("%s agree: their parameters are equal bit for bit.\n", pair.c_str());
    return true;
  }
  bool const bitwise = run.shards == other.shards;
  auto const distance = std::abs(run.loss - other.loss);
  bool const near = !bitwise && distance <= loss_bound;
  std::printf("%s %s: their evaluation losses are %.4f apart (%s).\n", pair.c_str(), near ? "agree" : "DISAGREE",
              distance, bitwise ? "their parameters should be equal bit for bit" : "at most 0.02 is due to rounding");
  return near;
}

int compare(std::vector<std::string> const& directories) {
  std::vector<Run> runs;
  runs.reserve(directories.size());
  for (auto const& directory : directories) runs.push_back(read(directory));
  print_table(runs);
  std::printf("\n");

  bool all_agree = true;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    // Against the run that should be nearest: one of as many shards, else the baseline.
    auto const twin = std::find_if(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(i), [&](auto const& other) {
      return same_work(other, runs[i]) && other.shards == runs[i].shards;
    });
    auto const& other = twin == runs.begin() + static_cast<std::ptrdiff_t>(i) ? runs[0] : *twin;
    auto const differ = differences(runs[i], other);
    if (!differ.empty())
      std::printf("%s need not agree with %s: it has %s.\n", runs[i].name.c_str(), other.name.c_str(), differ.c_str());
    else if (same_work(runs[i], other))
      all_agree &= agree(runs[i], other);
    else
      std::printf("%s and %s took other steps or batches, so they need not agree.\n", runs[i].name.c_str(),
                  other.name.c_str());
  }

  auto const most = std::max_element(runs.begin(), runs.end(), [](auto const& a, auto const& b) {
    return a.profile.samples_per_second < b.profile.samples_per_second;
  });
  auto const& fastest = most == runs.begin() && runs.size() > 1 ? runs[1] : *most;
  if (runs.size() > 1)
    std::printf("%s: %s\n", fastest.name.c_str(), scaling::SpeedUp(runs[0].profile, fastest.profile).says().c_str());
  return all_agree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> const directories(argv + 1, argv + argc);
    if (directories.empty() || directories[0].starts_with("-"))
      throw ConfigError(
          "needs the directories of runs, the baseline first: compare runs/quickstart/single runs/quickstart/ddp");
    return compare(directories);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "compare: %s\n", error.what());
    return launch::exit_code(error);
  }
}
