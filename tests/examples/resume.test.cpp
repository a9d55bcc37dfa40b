// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/json.hpp>

#include "examples/program.hpp"

using namespace lockstep_test;
namespace json = lockstep::json;

namespace {

using Flags = std::vector<std::string>;

/// A run of 23 steps per epoch on two ranks or devices, with 20 epochs.
Flags flags(TemporaryFolder const& folder, std::string const& name, Flags more) {
  std::string csv;
  for (int i = 0; i < 400; ++i)
    csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"some words " + std::to_string(i) + "\"\n";
  Flags all{"--data",       save(folder, "data.csv", csv),
            "--threads",    "1",
            "--epochs",     "20",
            "--d-model",    "16",
            "--batch-size", "8",
            "--save-dir",   folder / name};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Flags both(Flags a, Flags const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

json::Value run_json(std::string const& folder) { return json::parse(read_file(folder + "/run.json"), folder); }

/// Returns the losses of the logged steps, as printed.
std::vector<std::string> losses(std::string const& folder) {
  std::vector<std::string> all;
  auto const text = read_file(folder + "/metrics.jsonl");
  for (auto at = text.find("\"loss\":"); at != std::string::npos; at = text.find("\"loss\":", at + 1))
    all.push_back(text.substr(at, text.find(',', at) - at));
  return all;
}

bool appears(std::string const& file) {
  for (int tries = 0; tries < 6000 && !std::filesystem::exists(file); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return std::filesystem::exists(file);
}

long stopped_after(std::string const& out) {
  std::string const words = "stopped after step ";
  auto const at = out.find(words);
  return at == std::string::npos ? -1 : std::stol(out.substr(at + words.size()));
}

}  // namespace

TEST_CASE("a run that is killed at any moment, or stopped on request, resumes and ends as an uninterrupted one") {
  TemporaryFolder const folder;
  for (auto const& policy :
       {Flags{"--nproc", "2", "--num-layers", "1"}, Flags{"--parallel", "dp", "--num-layers", "1"}}) {
    CAPTURE(policy[0]);
    int const signal = policy[0] == "--nproc" ? SIGTERM : SIGUSR1;
    auto const name = policy[0].substr(2);
    REQUIRE(run_example("text_classification", flags(folder, "whole-" + name, policy)).exit_code == 0);
    auto const whole = run_json(folder / ("whole-" + name));
    CHECK(whole.at("resumed_at").array().empty());

    auto arguments = flags(folder, name, both(policy, {"--checkpoint-every", "20", "--resume", "auto"}));
    if (name == "nproc") arguments.emplace_back("--shard-optimizer");  // changes no bit
    {
      Program program(example("text_classification"), arguments);
      REQUIRE(appears((folder / name) + "/checkpoints/step_60.safetensors"));
      ::kill(-program.pid(), SIGKILL);
      CHECK(program.wait(5).exit_code == 128 + SIGKILL);
    }
    {
      Program program(example("text_classification"), arguments);
      REQUIRE(appears((folder / name) + "/checkpoints/step_120.safetensors"));
      ::kill(program.pid(), signal);
      auto const outcome = program.wait(60);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 128 + signal);
      CHECK(contains(outcome.out, "stopped after step "));
      auto const saved = (folder / name) + "/checkpoints/step_" + std::to_string(stopped_after(outcome.out));
      CHECK(contains(outcome.out, "saved as " + saved + ".safetensors; --resume auto resumes the run"));
      CHECK(std::filesystem::exists(saved + ".safetensors"));
      CHECK_FALSE(std::filesystem::exists((folder / name) + "/run.json"));
    }
    auto const last = run_example("text_classification", arguments);
    CAPTURE(last.err);
    REQUIRE(last.exit_code == 0);
    CHECK(contains(last.out, "resuming after step "));
    auto const resumed = run_json(folder / name);
    CHECK(resumed.at("parameters_sha256") == whole.at("parameters_sha256"));
    CHECK(resumed.at("final") == whole.at("final"));
    CHECK(resumed.at("steps") == whole.at("steps"));
    REQUIRE(resumed.at("resumed_at").array().size() == 2);
    CHECK(resumed.at("resumed_at").at(std::size_t{0}).integer() >= 60);
    CHECK(losses(folder / name) == losses(folder / ("whole-" + name)));
    auto const table = read_file((folder / name) + "/metrics.csv");
    CHECK(std::ranges::count(table, '\n') ==
          1 + std::ranges::count(read_file((folder / name) + "/metrics.jsonl"), '\n'));
    CHECK(table.find("kind,step") == table.rfind("kind,step"));

    auto const metrics = read_file((folder / name) + "/metrics.jsonl"), json = read_file((folder / name) + "/run.json");
    auto const again = run_example("text_classification", arguments);
    CHECK(again.exit_code == 0);
    CHECK(contains(again.out, "the run was complete at step 460"));
    CHECK(read_file((folder / name) + "/metrics.jsonl") == metrics);
    CHECK(read_file((folder / name) + "/run.json") == json);
  }
}

TEST_CASE("a resumed run notes its own flags that differ, which the shapes of parameters need not show") {
  TemporaryFolder const folder;
  auto const run = [&](Flags const& more) {
    auto const outcome = run_example("text_classification", both(flags(folder, "run", more), {"--resume", "auto"}));
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  CHECK_FALSE(contains(run({"--max-steps", "2", "--num-heads", "2"}), "was saved with"));
  CHECK_FALSE(contains(run({"--max-steps", "3", "--num-heads", "2", "--lr", "0.1"}), "was saved with"));
  for (Flags const& last : {Flags{"--dry-run"}, Flags{}})
    CHECK(contains(run(both({"--max-steps", "4", "--num-heads", "8"}, last)),
                   "step_3.safetensors was saved with --num-heads=2, and this run has --num-heads=8\n"));
  auto const tuned = run_example(
      "text_classification",
      flags(folder, "tuned", {"--max-steps", "1", "--init-from", folder / "run/checkpoints/step_2.safetensors"}));
  CHECK(contains(tuned.out, "step_2.safetensors was saved with --num-heads=2, and this run has --num-heads=4\n"));
}

TEST_CASE("a run reports the requested files that it does not write") {
  TemporaryFolder const folder;
  auto const out = [&](Flags const& arguments) {
    auto const outcome = run_example("text_classification", arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  out(flags(folder, "best", {"--max-steps", "45"}));  // an epoch
  auto const none_better =
      out(flags(folder, "best", {"--max-steps", "90", "--lr", "0", "--resume", "auto", "--best-by", "accuracy"}));
  CHECK(contains(none_better, "note: there is no best.safetensors"));
  CHECK_FALSE(std::filesystem::exists(folder / "best/checkpoints/best.safetensors"));

  auto const early =
      out({"--data", folder / "data.csv", "--threads", "1", "--epochs", "50", "--d-model", "16", "--batch-size", "400",
           "--lr", "0", "--patience", "1", "--trace", "--save-dir", folder / "early"});
  CHECK(contains(early, "note: nothing was traced"));
  CHECK_FALSE(std::filesystem::exists(folder / "early/trace.json"));
}

TEST_CASE("ranks restarted after a lost rank resume from their last step") {
  TemporaryFolder const folder;
  REQUIRE(run_example("text_classification", flags(folder, "whole", {"--nproc", "2", "--num-layers", "1"})).exit_code ==
          0);
  Program program(
      example("text_classification"),
      flags(folder, "run", {"--nproc", "2", "--num-layers", "1", "--max-restarts", "2", "--checkpoint-every", "20"}));
  REQUIRE(appears(folder / "run/checkpoints/step_60.safetensors"));
  auto const ranks = program.children();
  REQUIRE(ranks.size() == 2);
  ::kill(ranks[1], SIGKILL);
  auto const outcome = program.wait(120);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  auto const run = run_json(folder / "run");
  CHECK(run.at("parameters_sha256") == run_json(folder / "whole").at("parameters_sha256"));
  REQUIRE(run.at("resumed_at").array().size() == 1);
  CHECK(run.at("resumed_at").at(std::size_t{0}).integer() >= 60);
}

TEST_CASE("impossible resumes are refused in one sentence, before any file is written") {
  TemporaryFolder const folder;
  auto const refused = [&](std::string const& name, Flags more, std::string const& words) {
    auto const outcome = run_example("text_classification", flags(folder, name, std::move(more)));
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code != 0);
    CHECK(contains(outcome.err, words));
    CHECK(outcome.lines_of_err() == 1);
  };
  REQUIRE(run_example("text_classification", flags(folder, "run", {"--max-steps", "4"})).exit_code == 0);
  auto const run = read_file(folder / "run/run.json");
  refused("run", {}, "already holds a run");
  refused("run", {"--resume", "auto", "--grad-accum-steps", "2"},
          "effective batch of 8, but training would continue with 16");
  refused("run", {"--resume", "auto", "--seed", "2"}, "step_4.safetensors");
  refused("run", {"--resume", "auto", "--num-layers", "1"}, "and the model with its optimizer has");
  refused("new", {"--resume", folder / "none"}, "none: there is no such file");
  CHECK(read_file(folder / "run/run.json") == run);
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
  // Another directory resumes from the first one's checkpoint.
  auto const path = folder / "run/checkpoints/step_4.safetensors";
  CHECK(run_example("text_classification", flags(folder, "other", {"--resume", path, "--max-steps", "6"})).exit_code ==
        0);
  CHECK(run_json(folder / "other").at("steps").integer() == 6);
}
