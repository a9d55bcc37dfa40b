// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/detail/synonyms.hpp>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/app/command.hpp>
#include <lockstep/app/common_flags.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/option_descriptor.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

enum class Schedule { cosine, inverse_sqrt };
constexpr OptionWord schedules[] = {{"cosine", Schedule::cosine}, {"inverse-sqrt", Schedule::inverse_sqrt}};

/// Some flags of a trainer.
struct Flags {
  int width = 128, heads = 4, workers = 1;
  std::string precision = "fp32", data, resume = "never", gpus;
  Schedule schedule = Schedule::cosine;
  bool synchronized = false;
  std::vector<std::string> given, notes, handed_on;
  std::string help;

  void parse(std::vector<char const*> arguments) {
    app::Command command;
    command.add("--d-model", width, 1, 8192, "Width");
    command.add("--num-heads", heads, 1, 64, "Heads");
    command.add({.variable = workers,
                 .range = {0, 64},
                 .flag = {.names = "--num-workers", .help = "Workers", .synonyms = "workers n-workers"}});
    command.add("--precision", precision, {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}, "Precision");
    command.add({.variable = data, .flag = {.names = "--data", .help = "Data", .synonyms = "train-data train-file"}});
    command.add({.variable = {schedule, schedules},
                 .flag = {.names = "--lr-schedule", .help = "Schedule", .synonyms = "lr-scheduler-type"}});
    command.add("--resume", resume, "Resume");
    command.add("--sync-batch-norm", synchronized, "Normalise together");
    command.add(
        {.variable = gpus, .flag = {.names = "--gpu-ids", .help = "GPUs", .synonyms = "device-ids"}},
        [this](auto const&, auto const& text) { gpus = text; }, app::Takes::list);
    command.add_config();
    command.add_synonyms();
    arguments.insert(arguments.begin(), "program");
    static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
    given = command.given();
    notes = command.notes();
    help = command.help();
    handed_on = command.arguments(static_cast<int>(arguments.size()), arguments.data());
  }
};

Flags parsed(std::vector<char const*> arguments) {
  Flags flags;
  flags.parse(std::move(arguments));
  return flags;
}
Flags configured(std::string const& text, std::vector<char const*> arguments = {}) {
  TemporaryFolder const folder;
  auto const path = folder / "run.yaml";
  write_file(path, text);
  arguments.insert(arguments.end(), {"--config", path.c_str()});
  return parsed(arguments);
}
std::string refused(std::vector<char const*> arguments) {
  try {
    parsed(std::move(arguments));
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}
/// Returns the error message about a file, from the last digit of the line on.
std::string refused_file(std::string const& text) {
  try {
    configured(text);
  } catch (ConfigError const& error) {
    std::string const message = error.what();
    return message.substr(std::min(message.find("run.yaml:"), message.size()));
  }
  return "";
}

using Words = std::vector<std::string>;
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("flags are accepted under other trainers' names, with - or _") {
  for (auto const* name : {"--d-model", "--d_model", "--hidden-size", "--hidden_size", "--embed_dim"}) {
    CAPTURE(name);
    CHECK(parsed({name, "64"}).width == 64);
    CHECK(configured(std::string(name + 2) + ": 64\n").width == 64);
  }
  auto const flags = parsed({"--nhead=2", "--workers", "3", "--train_file=a=b", "--lr_scheduler_type", "inverse_sqrt"});
  CHECK(flags.heads == 2);
  CHECK(flags.workers == 3);
  CHECK(flags.data == "a=b");
  CHECK(flags.schedule == Schedule::inverse_sqrt);
  CHECK(flags.given == Words{"--num-heads", "--num-workers", "--data", "--lr-schedule"});
  CHECK(flags.notes.empty());
  CHECK(parsed({"--sync_bn"}).synchronized);
  CHECK(configured("sync_bn: True\n").synchronized);
  CHECK(configured("device_ids: [0, 1]\n").gpus == "0,1");
  CHECK(contains(parsed({"-h"}).help, "such as hidden_size, n_heads and learning_rate"));
}

TEST_CASE("an unknown flag that is near a synonym is refused with the synonym and its flag") {
  CHECK(contains(refused({"--hiden-size", "1"}),
                 "unknown flag --hiden-size; the nearest is --hidden-size, another name of --d-model (--help"));
  CHECK(contains(refused({"--train-fil", "1"}), "the nearest is --train-file, another name of --data (--help"));
  CHECK(contains(refused({"--num-worker", "1"}), "the nearest is --num-workers (--help"));
}

TEST_CASE("mixed precision is bf16 unless fp16 is named") {
  CHECK(parsed({"--amp"}).precision == "bf16");
  CHECK(parsed({"--mixed_precision", "fp16"}).precision == "fp16");
  CHECK(parsed({"--mixed-precision=no"}).precision == "fp32");
  CHECK(parsed({"--fp16"}).precision == "fp16");
  CHECK(parsed({"--amp", "--amp-dtype", "float16"}).precision == "fp16");
  CHECK(parsed({"--precision", "fp16", "--use_amp", "true"}).precision == "fp16");
  CHECK(configured("mixed_precision: true\n").precision == "bf16");
  CHECK(configured("fp16: false\nbf16: true\n").precision == "bf16");
  CHECK(configured("precision: fp16\nmixed_precision: true\n").precision == "fp16");
  CHECK(configured("fp16: False\n").precision == "fp32");
  CHECK(configured("mixed_precision: true\n", {"--precision", "fp32"}).precision == "fp32");

  auto const note = "mixed_precision means --precision bf16 here; the other choice is --precision fp16";
  CHECK(configured("mixed_precision: true\n").notes == Words{note});
  CHECK(configured("mixed_precision: fp16\n").notes.empty());
  CHECK(configured("mixed_precision: true\n", {"--precision", "fp32"}).notes.empty());
  CHECK(contains(refused({"--amp", "--precision", "fp32"}), "--precision: another name of --amp"));
  CHECK(contains(refused({"--fp16", "--bf16"}), "--bf16: another name of --fp16, and a flag is given once"));
  CHECK(contains(refused({"--mixed_precision", "fp8"}),
                 "--mixed_precision fp8: must be one of true, false, no, fp16, bf16, fp32, float16, bfloat16; it is "
                 "another name of --precision"));
}

TEST_CASE("restarted ranks receive the file's settings, and report equal notes") {
  auto const first = configured("hidden_size: 64\nmixed_precision: true\npin_memory: true\n", {"--nhead", "2"});
  CHECK(first.handed_on ==
        Words{"program", "--nhead", "2", "--d-model=64", "--mixed_precision=true", "--pin_memory=true"});
  std::vector<char const*> words;
  for (std::size_t i = 1; i < first.handed_on.size(); ++i) words.push_back(first.handed_on[i].c_str());
  auto const second = parsed(words);
  CHECK(second.width == 64);
  CHECK(second.precision == "bf16");
  CHECK(second.notes == first.notes);
}

TEST_CASE("fixed settings are accepted and noted; other values are refused with the reason") {
  auto const flags = configured(
      "data: {pin_memory: true, persistent_workers: yes, shuffle: True, drop_last: false}\n"
      "find_unused_parameters: false\n");
  CHECK(flags.notes == Words{"pin_memory, persistent_workers, shuffle: always on, accepted",
                             "drop_last: always off, accepted",
                             "find_unused_parameters: makes no difference, accepted"});
  CHECK(flags.given == Words{"--config"});
  CHECK(parsed({"--pin-memory", "--num-workers", "2", "--pin_memory"}).notes ==
        Words{"pin-memory, pin_memory: always on, accepted"});
  CHECK(contains(
      refused({"--persistent-workers", "false"}),
      "--persistent-workers false: is not possible, because worker threads live as long as their loader, and a new "
      "epoch starts none; leave it out"));
  CHECK(
      contains(refused({"--drop_last"}), "--drop_last true: is not possible, because a short last batch is weighted"));
  CHECK(contains(refused({"--shuffle=7"}), "--shuffle 7: must be true or false"));
  CHECK(contains(refused_file("a: {}\nshuffle: 0\n"), "run.yaml:2: shuffle 0: is not possible, because each epoch"));
  CHECK(contains(refused_file("shuffle: [true]\n"), "run.yaml:1: shuffle [true]: takes one value, not a list"));
}

TEST_CASE("settings without effect are accepted, and settings without a flag are refused") {
  CHECK(configured("logging_steps: 10\nper_device_eval_batch_size: 64\n").notes ==
        Words{"logging_steps, per_device_eval_batch_size: not used, accepted"});
  CHECK(contains(refused({"--num_classes", "4"}),
                 "--num_classes 4: is not a flag of this program, because the number of classes follows from the data; "
                 "leave it out"));
  CHECK(contains(refused_file("a: {}\noptimizer: SGD\n"),
                 "run.yaml:2: optimizer SGD: is not a flag of this program, because the optimizer"));
}

TEST_CASE("two names of one flag count as a duplicate flag") {
  CHECK(contains(refused({"--hidden-size", "3", "--d-model", "4"}),
                 "--d-model: another name of --hidden-size, and a flag is given once; leave out one"));
  CHECK(contains(refused({"--hidden-size", "3", "--hidden-size", "3"}),
                 "--hidden-size: a flag takes one value and is given once"));
  CHECK(contains(refused_file("nhead: 2\nn_heads: 2\n"), "run.yaml:2: n_heads is given by line 1 too; leave out one"));
  CHECK(configured("nhead: 2\n", {"--n_heads", "8"}).heads == 8);
}

TEST_CASE("an invalid value, and a synonym of a missing flag, are refused") {
  CHECK(contains(refused({"--nhead", "0"}), "--num-heads 0: must be a whole number from 1 to 64"));
  CHECK(contains(refused_file("\nnhead: 0\n"), "run.yaml:2: --num-heads 0: must be a whole number"));
  CHECK(
      contains(refused({"--vocab_size", "9"}), "--vocab_size: another name of --vocabulary, which this program does "));
  CHECK(contains(refused_file("vocab_size: 9\n"), "run.yaml:1: vocab_size: another name of --vocabulary, which"));
  CHECK(contains(refused({"--num_attention_haeds", "2"}), "the nearest is --num-attention-heads"));
  CHECK(contains(refused({"--nhead"}), "--num-heads: a flag takes one value"));
}

TEST_CASE("a program's own flag takes precedence over a synonym") {
  app::Command command;
  int hidden = 1, smoothing = 1;
  command.add("--hidden-size", hidden, 1, 9, "Width of something else");
  command.add("--smoothing", smoothing, 1, 9, "Smoothing of labels");
  command.add_synonyms();
  std::vector<char const*> const words{"program", "--hidden_size", "5", "--label_smoothing_factor=3"};
  CHECK(command.parse(static_cast<int>(words.size()), words.data()));
  CHECK(hidden == 5);
  CHECK(smoothing == 3);
}

TEST_CASE("no name is in the tables twice, and the reference page lists each") {
  auto const page = read_file(std::string(LOCKSTEP_SOURCE_DIR) + "/docs/reference/command-line.md");
  std::set<std::string> seen;
  auto const listed = [&](std::string_view names) {
    std::string list;
    app::detail::any_word(names, [&](std::string_view name) {
      CAPTURE(name);
      CHECK(seen.insert(std::string(name)).second);
      CHECK(std::ranges::all_of(name,
                                [](char c) { return c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }));
      list += (list.empty() ? "`" : ", `") + std::string(name) + "`";
      return false;
    });
    return list;
  };
  auto const in_code = [](std::string_view because) {
    return std::regex_replace(std::string(because), std::regex("--[a-z-]+|metrics.jsonl|nn::Recompute"), "`$&`");
  };
  auto const has = [&](std::string const& row) { CHECK_MESSAGE(contains(page, row), "the page lacks: ", row); };
  std::string_view last;
  app::Command command;
  app::Options options;
  app::CommonFlags const common(command, options);
  for (auto const& row : command.synonyms()) {
    CHECK(last < row.flag);
    last = row.flag;
    has("| `" + std::string(row.flag) + "` | " + listed(row.names) + " |\n");
  }
  for (auto const& row : app::detail::translations) {
    std::string values;
    app::detail::any_word(row.values, [&](std::string_view word) {
      auto const at = word.find('=');
      auto const ours = at == word.npos ? "itself" : word.substr(at + 1);
      values += (values.empty() ? "" : ", ") + std::string(at == word.npos ? "else" : word.substr(0, at)) + ": " +
                (ours.empty() ? "as without" : std::string(ours.substr(0, ours.find('|'))));
      return false;
    });
    has("| " + listed(row.names) + " | `" + std::string(row.flag) + "` | " + values + " |\n");
  }
  for (auto const& row : app::detail::constants) {
    auto const* const is = row.is == app::detail::Always::unused ? "not used"
                           : row.is == app::detail::Always::on   ? "on"
                           : row.is == app::detail::Always::off  ? "off"
                                                                 : "either";
    has("| " + listed(row.names) + " | " + is + " | " + in_code(row.because) + " |\n");
  }
  for (auto const& row : app::detail::refused_names)
    has("| " + listed(row.names) + " | " + in_code(row.because) + " |\n");
  CHECK(seen.size() > 100);
}
