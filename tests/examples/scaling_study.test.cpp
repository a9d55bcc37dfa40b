// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "examples/program.hpp"

using namespace lockstep_test;

namespace {

/// A script that behaves as a trainer: it saves a run, and fails with dp.
std::string trainer(TemporaryFolder const& folder) {
  auto const file = save(folder, "toy", R"(#!/bin/sh
parallel=single nproc=1 dir= dry=no
while [ $# -gt 0 ]; do
  case $1 in
    --parallel) parallel=$2; shift;;
    --nproc) nproc=$2; shift;;
    --save-dir) dir=$2; shift;;
    --dry-run) dry=yes;;
  esac
  shift
done
if [ $dry = yes ]; then echo 'dry run: 640 samples, 20 steps an epoch, 40 in all'; exit 0; fi
if [ $parallel = dp ]; then echo 'toy: device 1 is on fire' >&2; exit 1; fi
mkdir -p "$dir"
echo ran >>"$dir/../ran"
speed=$((500 + 400 * nproc))
cat >"$dir/run.json" <<END
{"example": "toy", "parallel": "$parallel", "backend": "host", "world_size": $nproc, "devices": 1, "threads": 1,
 "steps": 40, "samples": 1280, "effective_batch_size": $((32 * nproc)), "samples_per_second": $speed.0,
 "epoch_seconds": [1.0, 1.0], "step_ms": {"p50": 35.0, "p95": 36.0}, "parameters": 1000, "buckets": [],
 "phases_ms": {"data_wait": 0, "forward": 10, "backward": 20, "communication_exposed": 0, "optimizer": 2},
 "final": {"eval_loss": 0.5, "eval_accuracy": 0.9}, "parameters_sha256": "aa"}
END
)");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

}  // namespace

TEST_CASE("a study prints its plan, runs all configurations, lists failures, and resumes") {
  TemporaryFolder const folder;
  auto const program = trainer(folder);
  std::vector<std::string> const flags{program, "--devices=1,2", "--save-dir", folder / "runs", "--epochs", "2"};
  auto dry = flags;
  dry.emplace_back("--dry-run");
  auto const plan = run_example("scaling_study", dry);
  CAPTURE(plan.err);
  CHECK(plan.exit_code == 0);
  CHECK(contains(plan.out, "3 runs of toy"));
  CHECK(contains(plan.out, "  toy-ddp2 "));
  CHECK(contains(plan.out, "estimated time: about "));
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));

  auto const outcome = run_example("scaling_study", flags);
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "[2/3] toy-dp2: failed: toy: device 1 is on fire"));
  CHECK(contains(outcome.out, "toy: ddp 2 is fastest with 1300.0 samples/s, 1.44 times the speed of one device"));
  auto const report = folder / "runs/report/";
  CHECK(contains(read_file(report + "performance_report.txt"), "dp 2: 1 run failed."));
  CHECK(contains(read_file(report + "report.html"), "<td class=\"text\" colspan=\"10\">failed: toy: device 1"));
  CHECK(contains(read_file(report + "comprehensive_summary.csv"), "failed,0,1,0,measured,"));

  auto const again = run_example("scaling_study", flags);
  CHECK(contains(again.out, "; 2 are finished already"));
  CHECK(std::ranges::count(read_file(folder / "runs/ran"), '\n') == 2);
  auto other = flags;
  other.back() = "3";
  auto const refused = run_example("scaling_study", other);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "holds a run with other flags, \"2\" instead of \"3\""));

  auto const alone = run_example("scaling_report", {folder / "runs/toy-ddp2", "--out", folder / "alone"});
  CAPTURE(alone.err);
  CHECK(alone.exit_code == 0);
  CHECK(contains(read_file(folder / "alone/performance_report.txt"), "Baseline: predicted"));
}

TEST_CASE("arguments that the programs do not support are refused in one sentence") {
  TemporaryFolder const folder;
  auto const check = [](std::string const& program, std::vector<std::string> const& arguments,
                        std::string const& message) {
    auto const outcome = run_example(program, arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, message));
  };
  check("scaling_study", {}, "needs the name of a trainer");
  check("scaling_study", {"--device", "2", "/bin/true"}, "unknown flag --device; the nearest is --devices");
  check("scaling_study", {"/bin/true", "--parallel", "fsdp"}, "must be one of single, dp, ddp");
  check("scaling_study", {"/bin/true", "--nproc", "2"}, "--nproc: scaling_study sets this flag");
  check("scaling_study", {"/bin/true", "--batch-sizes", "8", "--batch-size", "4"}, "give one of them");
  check("scaling_report", {}, "needs the folders of runs");
  check("scaling_report", {folder / ""}, "there is no run in it or below it");
  check("scaling_report", {folder / "missing"}, "missing: is no folder");
}
