// SPDX-License-Identifier: Apache-2.0
// dp_vs_ddp [flags] TRAINER [flags of the trainer]: compares a single device, DataParallel and DistributedDataParallel
// on several numbers of devices. Runs the trainer in one process per configuration. Prints throughput, speed-up, memory
// per device, accuracy, and whether results are equal.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/app/trainer_program.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/run_program.hpp>
#include <lockstep/scaling/compared_run.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/speed_up.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/files/atomic_file.hpp>

using namespace lockstep;
namespace fs = std::filesystem;
using scaling::detail::rounded;
using Words = std::vector<std::string>;

namespace {

struct Flags {
  std::vector<int> devices{1, 2};
  std::string save_dir = "runs/dp_vs_ddp", csv;
  std::optional<app::TrainerProgram> trainer;

  explicit Flags(app::Command& command) {
    command.add("--devices", "Numbers of devices to compare, as in 1,2,4 (default 1,2)",
                [this](auto const& name, auto const& text) {
                  devices = app::detail::parse_numbers<int>(name, text, 1, 256);
                  std::sort(devices.begin(), devices.end());
                  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
                });
    command.add("--save-dir", save_dir, "New folder for a folder and a log of each run; must not exist yet");
    command.add("--csv", csv, "File that receives the tables as CSV; default: none");
  }

  /// Reads the arguments. The trainer is the first word that is neither a flag of this program nor its value.
  /// @returns false if --help was given
  [[nodiscard]] bool parse(app::Command& command, int argc, char** argv) {
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
      std::string_view const flag = argv[at];
      at += flag.find('=') == flag.npos && flag != "--help" && flag != "-h" ? 2 : 1;
    }
    if (!command.parse(std::min(at, argc), argv)) return false;
    if (at >= argc) throw ConfigError("needs the name of a trainer: dp_vs_ddp --devices 1,2 text_classification");
    trainer.emplace(Words(argv + at, argv + argc), "dp_vs_ddp",
                    std::vector<std::string_view>{"--parallel", "--multi-gpu", "--devices", "--nproc", "--save-dir"});
    for (auto const& [flag, path] : {std::pair{"--save-dir", save_dir}, std::pair{"--csv", csv}})
      if (!path.empty() && fs::exists(path))
        throw ConfigError(std::string(flag) + " " + path + ": exists already; name another, or remove it");
    if (!csv.empty()) static_cast<void>(train::AtomicFile(csv));  // checks that it can be written
    return true;
  }
};

/// One run of the trainer, first planned, then finished.
struct Entry {
  std::string name, parallel;
  int devices;
  launch::ProgramEnd end{};
  std::optional<scaling::ComparedRun> run{};  // empty if it failed
  std::string error{};                        // reason of a failure
};

std::vector<Entry> planned(std::vector<int> const& devices) {
  std::vector<Entry> all{{"single", "single", 1}};
  for (int const count : devices)
    for (auto const* parallel : {"dp", "ddp"})
      if (count > 1) all.push_back({parallel + std::to_string(count), parallel, count});
  return all;
}

/// Runs the trainer to its end. Prints each line of its output and keeps it in a log.
void run(Entry& entry, std::string const& place, Flags const& flags) {
  auto words = flags.trainer->words();
  auto const add = [&](std::string const& flag, std::string const& value) { words.insert(words.end(), {flag, value}); };
  if (!flags.trainer->has("--threads") && !flags.trainer->has("--config"))  // equal for each device in every run
    add("--threads", std::to_string(std::max(1, processors() / flags.devices.back())));
  add("--parallel", entry.parallel);
  add("--save-dir", flags.save_dir + "/" + entry.name);
  if (entry.devices > 1) add(entry.parallel == "dp" ? "--devices" : "--nproc", std::to_string(entry.devices));

  auto const log_file = flags.save_dir + "/" + entry.name + ".log";
  entry.end = app::run_trainer(words, place + " " + entry.name, log_file);
  try {
    if (entry.end.exit_code == 0)
      entry.run = scaling::ComparedRun::read(flags.save_dir + "/" + entry.name);
    else
      entry.error = app::failure_of(entry.end);
  } catch (DataError const& error) {
    entry.error = error.what();
  }
  if (!entry.run)
    std::printf("%s %s: failed (all of its output: %s)\n", place.c_str(), entry.name.c_str(), log_file.c_str());
}

std::string figure(double value, int digits) { return std::isnan(value) ? "-" : rounded(value, digits); }
double others_bytes(scaling::ComparedRun const& run) {
  auto const& all = run.device_bytes;
  return all.size() < 2 ? std::nan("") : *std::max_element(all.begin() + 1, all.end());
}

void print_speed(std::vector<Entry> const& entries, scaling::ComparedRun const& baseline) {
  std::printf("\n%-10s %7s %7s %10s %10s %9s %9s %10s %9s %9s  %s\n", "run", "devices", "threads", "samples/s",
              "training s", "whole s", "speed-up", "efficiency", baseline.metric.substr(0, 9).c_str(), "eval loss",
              "parameters");
  for (auto const& entry : entries) {
    if (!entry.run) {
      std::printf("%-10s %7d failed: %s\n", entry.name.c_str(), entry.devices, entry.error.c_str());
      continue;
    }
    auto const& run = *entry.run;
    scaling::SpeedUp const speed_up(baseline.profile, run.profile);
    std::printf("%-10s %7d %7lld %10.1f %10.1f %9.1f %9.2f %8.0f %% %9s %9.4f  %.12s\n", entry.name.c_str(),
                entry.devices, static_cast<long long>(run.profile.threads), run.profile.samples_per_second,
                run.training_seconds, entry.end.seconds, speed_up.factor(), 100 * speed_up.efficiency(),
                figure(run.metric_value, 4).c_str(), run.loss, run.parameters_sha256.c_str());
  }
}

void print_memory(std::vector<Entry> const& entries) {
  std::printf(
      "\nmemory in MB: parameters, gradients, optimizer and activations of a device; all of the largest process\n");
  std::printf("%-10s %12s %14s %12s %16s\n", "run", "first device", "other devices", "first/others", "largest process");
  for (auto const& entry : entries) {
    if (!entry.run || entry.run->device_bytes.empty()) continue;
    auto const first = entry.run->device_bytes[0], others = others_bytes(*entry.run);
    std::printf("%-10s %12.1f %14s %12s %16.1f\n", entry.name.c_str(), first / 1e6, figure(others / 1e6, 1).c_str(),
                figure(first / others, 2).c_str(), static_cast<double>(entry.end.peak_resident_bytes) / 1e6);
  }
}

bool print_agreement(std::vector<scaling::ComparedRun> const& runs) {
  bool all = true;  // all runs that should be equal
  std::printf("\n");
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto const& other = scaling::ComparedRun::reference_run(runs, i);
    std::printf("%s\n", runs[i].agreement_summary(other).c_str());
    all &= runs[i].agreement(other) != scaling::Agreement::none;
  }
  for (std::size_t i = 1; i < runs.size(); ++i)
    std::printf("%s: %s\n", runs[i].name.c_str(), scaling::SpeedUp(runs[0].profile, runs[i].profile).summary().c_str());
  return all;
}

std::string csv_of(std::vector<Entry> const& entries, scaling::ComparedRun const* baseline) {
  std::string text =
      "run,parallel,devices,threads,samples_per_second,training_seconds,whole_seconds,speed_up,efficiency,metric,"
      "metric_value,eval_loss,first_device_bytes,other_devices_bytes,largest_process_bytes,parameters_sha256,error\n";
  auto const exact = [](double value) { return std::isnan(value) ? std::string() : shortest(value); };
  for (auto const& entry : entries) {
    text += entry.name + "," + entry.parallel + "," + std::to_string(entry.devices) + ",";
    if (entry.run && baseline) {
      auto const& run = *entry.run;
      scaling::SpeedUp const speed_up(baseline->profile, run.profile);
      text += std::to_string(run.profile.threads);
      for (double const value : {run.profile.samples_per_second, run.training_seconds, entry.end.seconds,
                                 speed_up.factor(), speed_up.efficiency()})
        text += "," + exact(value);
      text += "," + run.metric + "," + exact(run.metric_value) + "," + exact(run.loss);
      for (double const value : {run.device_bytes.empty() ? std::nan("") : run.device_bytes[0], others_bytes(run),
                                 static_cast<double>(entry.end.peak_resident_bytes)})
        text += "," + exact(value);
      text += "," + run.parameters_sha256 + ",\n";
    } else {
      text += std::string(12, ',') + "," + train::detail::csv_quoted(entry.error) + "\n";
    }
  }
  return text;
}

int compare(Flags const& flags) {
  fs::create_directories(flags.save_dir);
  auto entries = planned(flags.devices);
  for (auto const& entry : entries)
    if (entry.parallel == "dp" && entry.devices > 4)
      std::printf("note: %s: the first device sums all gradients and makes all updates; use ddp beyond 4 devices\n",
                  entry.name.c_str());
  std::vector<scaling::ComparedRun> runs;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    run(entries[i], "[" + std::to_string(i + 1) + "/" + std::to_string(entries.size()) + "]", flags);
    if (entries[i].run) runs.push_back(*entries[i].run);
  }
  if (!flags.csv.empty()) {
    train::AtomicFile file(flags.csv);
    file.write(csv_of(entries, runs.empty() ? nullptr : &runs[0]));
    file.commit();
  }
  if (runs.empty()) throw DataError("no run succeeded; the first says: " + entries[0].error);
  print_speed(entries, runs[0]);
  print_memory(entries);
  return print_agreement(runs) && runs.size() == entries.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("dp_vs_ddp", [&] {
    app::Command command("dp_vs_ddp [flags] TRAINER [flags of the trainer]: compares DataParallel with ddp");
    Flags flags(command);
    if (flags.parse(command, argc, argv)) return compare(flags);
    std::fputs(command.help().c_str(), stdout);
    return 0;
  });
}
