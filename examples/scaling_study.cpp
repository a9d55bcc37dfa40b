// SPDX-License-Identifier: Apache-2.0
// scaling_study TRAINER [flags]: runs a trainer on a single device, with DataParallel and with DistributedDataParallel,
// for several numbers of devices, batch sizes and data sets, and writes the report of scaling_report. Each run is a
// process of its own. A second start with equal flags resumes an interrupted study.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/app/link_flags.hpp>
#include <lockstep/app/save_dir.hpp>
#include <lockstep/app/study_files.hpp>
#include <lockstep/app/study_plan.hpp>
#include <lockstep/app/trainer_program.hpp>
#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/folder.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/study/study_report.hpp>
#include <lockstep/scaling/study/study_tables.hpp>

using namespace lockstep;
namespace fs = std::filesystem;
using scaling::StudyEntry;
using Words = std::vector<std::string>;

namespace {

constexpr int trial_steps = 12;

/// @throws ConfigError for an empty element, which would be the trainer's default
std::vector<std::string> list_of(std::string const& name, std::string const& text) {
  if (std::error_code error; fs::exists(text, error)) return {text};  // a path may have a comma
  std::vector<std::string> all;
  std::istringstream list(text);
  for (std::string each; std::getline(list, each, ',');) all.push_back(each);
  if (all.empty() || std::find(all.begin(), all.end(), "") != all.end())
    throw ConfigError(name + " '" + text +
                      "': an element is empty; separate the elements by single commas, without blanks");
  return all;
}

struct Flags {
  app::StudyPlan plan;
  scaling::StudyOptions options;
  std::string out;
  bool dry_run = false;
  std::optional<app::TrainerProgram> trainer;

  explicit Flags(app::Command& command) {
    command.add("--devices", plan.devices, 1, 256, "Numbers of devices");
    command.add("--parallel", "Policies: several of single, dp, ddp (default all)",
                [this](auto const& name, auto const& text) {
                  plan.parallel = list_of(name, text);
                  for (auto const& each : plan.parallel)
                    if (each != "single" && each != "dp" && each != "ddp")
                      throw ConfigError(name + " " + text + ": \"" + each + "\" must be one of single, dp, ddp");
                });
    command.add("--batch-sizes", plan.batch_sizes, 1, 1 << 20, "Batch sizes per device; default: the trainer's");
    command.add("--data", "Training data sets, as in a.csv,b.csv; default: the trainer's",
                [this](auto const& name, auto const& text) { plan.data = list_of(name, text); });
    command.add("--repeat", plan.repeat, 1, 1000, "Runs of each configuration, with seeds 1, 2 and so on");
    command.add("--save-dir", plan.save_dir, "Folder of all runs; default: runs/TRAINER_study");
    command.add("--out", out, "Folder that receives the report; default: report in the folder of the runs");
    command.add("--warmup", options.warmup_epochs, 0, 1000000, "First epochs that times and rates leave out");
    app::add_link(command, options.link, options.alpha_us, options.beta_gb_s);
    command.add("--dry-run", dry_run, "Print the plan and how long it may take, and exit");
  }

  /// Reads the arguments. The first word without a dash that is no value of a flag is the trainer. Flags that are not
  /// of this program are the trainer's.
  /// @returns false if --help was given
  [[nodiscard]] bool parse(app::Command& command, int argc, char** argv) {
    std::vector<char const*> own{argv[0]};
    Words words;
    constexpr std::string_view with_value[] = {"--devices", "--parallel", "--batch-sizes", "--data",
                                               "--repeat",  "--save-dir", "--out",         "--warmup",
                                               "--link",    "--alpha-us", "--beta-gb-s"};
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      auto const flag = app::detail::FlagNames::with_dashes(word.substr(0, word.find('=')));
      bool const valued = std::find(std::begin(with_value), std::end(with_value), flag) != std::end(with_value);
      if (valued || flag == "--dry-run" || flag == "--help" || flag == "-h" || (words.empty() && word[0] == '-')) {
        own.push_back(argv[i]);
        if (valued && word.find('=') == word.npos && i + 1 < argc) own.push_back(argv[++i]);
      } else {
        words.push_back(word);
      }
    }
    if (!command.parse(static_cast<int>(own.size()), own.data())) return false;
    if (words.empty())
      throw ConfigError("needs the name of a trainer: scaling_study text_classification --devices 1,2");
    trainer.emplace(std::move(words), "scaling_study", std::vector<std::string_view>{"--nproc", "--multi-gpu"});
    if (!plan.batch_sizes.empty() && (trainer->has("--batch-size") || trainer->has("--global-batch-size")))
      throw ConfigError("--batch-sizes: the trainer's flags have a batch size, too; give one of them");
    if (plan.save_dir.empty()) plan.save_dir = "runs/" + trainer->name() + "_study";
    if (out.empty()) out = plan.save_dir + "/report";
    return true;
  }
};

Index threads_of(StudyEntry const& entry) {
  for (std::size_t i = 0; i + 1 < entry.command.size(); ++i)
    if (entry.command[i] == "--threads") return std::max(1, std::atoi(entry.command[i + 1].c_str()));
  return 1;
}

/// Returns the seconds between a log's last step and the evaluation after it.
double evaluation_seconds(std::string const& log_file) {
  double step = 0, evaluation = 0;
  std::ifstream log(log_file);
  for (std::string line; std::getline(log, line);) {
    auto const json = json::parse(line, log_file);
    (json.at("kind").string() == "step" ? step : evaluation) = json.at("seconds").number();
  }
  return std::max(0.0, evaluation - step);
}

/// Runs a few steps on a single device, in a folder that it removes.   @returns nothing if that fails
std::optional<app::StudyTrial> try_run(Flags const& flags, StudyEntry const& entry) {
  app::StudyTrial trial{.counts_steps = flags.trainer->has("--max-steps")};
  auto const single = [&](Words words) {
    words.insert(words.end(), {"--parallel", "single", "--threads", std::to_string(threads_of(entry))});
    if (entry.batch_size) words.insert(words.end(), {"--batch-size", std::to_string(*entry.batch_size)});
    if (!entry.data.empty()) words.insert(words.end(), {"--data", entry.data});
    return words;
  };
  Words words = flags.trainer->without("--threads");
  auto const folder = fs::path(lockstep::temporary_folder()) / ("lockstep_study_" + std::to_string(::getpid()));
  try {
    auto dry = single(words);
    dry.emplace_back("--dry-run");
    Words lines;
    auto const end = launch::run_program(dry, [&](int, std::string const& line) { lines.push_back(line); });
    words = single(app::TrainerProgram(words, "scaling_study", {}).without("--max-steps"));
    words.insert(words.end(), {"--max-steps", std::to_string(trial_steps), "--save-dir", folder.string()});
    auto const whole = launch::run_program(words, [](int, std::string const&) {});
    if (end.exit_code != 0 || whole.exit_code != 0) {
      std::printf("note: a short run of %s failed: %s\n", entry.name.c_str(),
                  app::failure_of(end.exit_code != 0 ? end : whole).c_str());
      fs::remove_all(folder);
      return std::nullopt;
    }
    scaling::SavedRun const saved(folder.string());
    bool known = false;
    auto const profile = saved.profile();
    for (auto const& line : lines) known |= trial.read_dry_run(line, profile.effective_batch_size);
    // The median step leaves the start out.
    auto const step_ms = saved.read([](json::Value const& run) { return run.at("step_ms").at("p50").number(); });
    trial.samples_per_second = step_ms > 0 ? 1e3 * profile.samples() / step_ms : 0;
    trial.evaluation_seconds = evaluation_seconds(folder.string() + "/metrics.jsonl");
    trial.start_seconds =
        std::max(0.0, whole.seconds - trial_steps * profile.step_ms() / 1e3 - trial.evaluation_seconds);
    fs::remove_all(folder);
    if (known) return trial;
  } catch (Error const&) {
  }
  std::error_code error;
  fs::remove_all(folder, error);
  return std::nullopt;
}

/// Prints the plan.   @returns estimated seconds of each run; 0: unknown
std::vector<double> print_plan(Flags const& flags, std::vector<StudyEntry> const& entries,
                               std::vector<app::StudyState> const& states) {
  auto const kept = std::count(states.begin(), states.end(), app::StudyState::finished);
  std::printf("%zu runs of %s in %s, one after another on %d processors; %td are finished already\n", entries.size(),
              flags.trainer->name().c_str(), flags.plan.save_dir.c_str(), processors(), kept);
  std::vector<double> seconds(entries.size(), 0);
  std::vector<std::pair<std::string, std::optional<app::StudyTrial>>> trials;
  double all = 0;
  bool complete = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto const& entry = entries[i];
    std::string says = "finished";
    if (states[i] == app::StudyState::missing) {
      auto const key = entry.data + "\n" + std::to_string(entry.batch_size.value_or(0));
      auto at = std::find_if(trials.begin(), trials.end(), [&](auto const& one) { return one.first == key; });
      if (at == trials.end()) at = trials.insert(trials.end(), {key, try_run(flags, entry)});
      if (at->second) seconds[i] = app::StudyPlan::seconds_of(entry, *at->second, threads_of(entry));
      complete &= at->second.has_value();
      all += seconds[i];
      says = at->second ? "about " + app::duration(seconds[i]) : "unknown time";
    }
    auto const oversubscribed = entry.devices * threads_of(entry) > entry.processors;
    std::printf("  %-40s %s%s\n", entry.name.c_str(), says.c_str(),
                oversubscribed ? "; more threads than processors" : "");
  }
  if (all > 0 || complete)
    std::printf("estimated time: about %s%s, from runs of %d steps\n", app::duration(all).c_str(),
                complete ? "" : " and the runs of unknown time", trial_steps);
  std::fflush(stdout);
  return seconds;
}

void save(StudyEntry const& entry, std::string const& folder) {
  AtomicFile file(folder + "/" + entry.name + StudyEntry::suffix);
  file.write(entry.json());
  file.commit();
}

void run(StudyEntry& entry, std::string const& place, std::string const& folder) {
  // A trainer outlives a study that was killed.
  static_cast<void>(app::SaveDirLock(folder + "/" + entry.name));
  std::error_code error;
  fs::remove_all(folder + "/" + entry.name, error);  // of a run that was not finished
  entry.state = StudyEntry::State::running;
  save(entry, folder);
  auto const log = folder + "/" + entry.name + ".log";
  auto const end = app::run_trainer(entry.command, place + " " + entry.name, log);
  entry.exit_code = end.exit_code;
  entry.seconds = end.seconds;
  entry.peak_resident_bytes = end.peak_resident_bytes;
  bool const finished = end.exit_code == 0 && fs::exists(folder + "/" + entry.name + "/run.json", error);
  entry.state = finished ? StudyEntry::State::finished : StudyEntry::State::failed;
  if (!finished) {
    entry.message = app::failure_of(end);
    std::printf("%s %s: failed: %s (all of its output: %s)\n", place.c_str(), entry.name.c_str(), entry.message.c_str(),
                log.c_str());
  }
  save(entry, folder);
}

int study(Flags& flags) {
  auto entries = flags.plan.entries(*flags.trainer, processors());
  if (entries.empty()) throw ConfigError("--parallel: names no policy; give several of single, dp, ddp");
  std::vector<app::StudyState> states;
  states.reserve(entries.size());
  for (auto& entry : entries) states.push_back(app::find_earlier_run(entry, flags.plan.save_dir));
  auto const seconds = print_plan(flags, entries, states);
  if (flags.dry_run) return 0;

  app::SaveDirLock const lock(flags.plan.save_dir);
  app::create_report_folder(flags.out);
  double spent = 0, estimated = 0, left = 0;
  for (double const each : seconds) left += each;
  int failed = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (states[i] == app::StudyState::finished) continue;
    auto const place = "[" + std::to_string(i + 1) + "/" + std::to_string(entries.size()) + "]";
    run(entries[i], place, flags.plan.save_dir);
    failed += entries[i].state == StudyEntry::State::failed;
    spent += entries[i].seconds;
    estimated += seconds[i];
    left -= seconds[i];
    auto const rest = estimated > 0 && left > 0 ? ", about " + app::duration(left * spent / estimated) + " left" : "";
    if (entries[i].state == StudyEntry::State::finished)
      std::printf("%s %s: finished in %s%s\n", place.c_str(), entries[i].name.c_str(),
                  app::duration(entries[i].seconds).c_str(), rest.c_str());
    std::fflush(stdout);
  }

  auto const result = scaling::Study::read({flags.plan.save_dir}, flags.options);
  auto const files = app::write_study_files(result, flags.out);
  std::printf("\n");
  for (auto const& group : result.groups) {
    std::printf("%s\n", scaling::results_table(group).text().c_str());
    if (auto const table = scaling::dp_against_ddp_table(group); !table.rows.empty())
      std::printf("%s\n", table.text().c_str());
  }
  std::printf("%s\n", scaling::study_summary(result).c_str());
  for (auto const* const notes : {&result.notes, &files.notes})
    for (auto const& note : *notes) std::printf("note: %s\n", note.c_str());
  std::printf("report: %s\n", files.html.c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("scaling_study", [&] {
    app::Command command(
        "scaling_study TRAINER [flags] [flags of the trainer]: compares policies and numbers of devices");
    Flags flags(command);
    if (flags.parse(command, argc, argv)) return study(flags);
    std::fputs(command.help().c_str(), stdout);
    return 0;
  });
}
