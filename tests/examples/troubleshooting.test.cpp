// SPDX-License-Identifier: Apache-2.0
// The messages that docs/how-to/troubleshooting.md quotes, as far as a host without GPUs can cause them.
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "examples/program.hpp"
#include "sanitized.hpp"

using namespace lockstep_test;

namespace {

using Words = std::vector<std::string>;

struct Trainer {
  TemporaryFolder folder;
  std::string data;

  Trainer() {
    std::string csv;
    for (int i = 0; i < 160; ++i)
      csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"word" + std::to_string(i % 9) + " more\"\n";
    data = save(folder, "train.csv", csv);
  }
  [[nodiscard]] Words flags(Words const& more) const {
    Words all{"--data", data, "--d-model", "16", "--num-heads", "2", "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// The complete output of a run.
  std::string printed_by(Words const& more, int code = 0) const {
    auto const outcome = run_example("text_classification", flags(more));
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == code);
    return outcome.out + outcome.err;
  }
  /// A run of two ranks that would take hours, after both have started to train.
  [[nodiscard]] std::unique_ptr<Program> long_run(Words more) const {
    more.insert(more.end(), {"--nproc", "2", "--epochs", "100000"});
    auto run = std::make_unique<Program>(example("text_classification"), flags(more));
    for (int i = 0; i < 3000 && (run->children().size() < 2 || !contains(run->out(), "epoch 1/")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(run->children().size() == 2);
    return run;
  }
  /// The rank of a world of two on this host.
  [[nodiscard]] Words as_rank(int rank, std::string const& port, Words const& more) const {
    auto const number = std::to_string(rank);
    Words all{"RANK=" + number,        "WORLD_SIZE=2",        "LOCAL_RANK=" + number,        "LOCAL_WORLD_SIZE=2",
              "MASTER_ADDR=localhost", "MASTER_PORT=" + port, example("text_classification")};
    auto const own = flags(more);
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }
  /// The output of two such ranks.
  [[nodiscard]] std::string two_say(Words const& first, Words const& second) const {
    Program one("/usr/bin/env", first), other("/usr/bin/env", second);
    auto const a = one.wait(60), b = other.wait(60);
    CHECK((a.exit_code != 0 || b.exit_code != 0));
    return a.out + a.err + b.out + b.err;
  }
};

/// Checks that the page contains a part of a message, and that a program's output contains it.
void check_quoted(std::string const& printed, std::string const& part) {
  static auto const page = read_file(std::string(LOCKSTEP_SOURCE_DIR) + "/docs/how-to/troubleshooting.md");
  CAPTURE(printed);
  CHECK_MESSAGE(contains(page, part), "the page does not quote: ", part);
  CHECK_MESSAGE(contains(printed, part), "not in the output: ", part);
}

}  // namespace

TEST_CASE("a name in use, and a missing rank, are reported") {
  Trainer const trainer;
  auto const port = std::to_string(20000 + ::getpid() % 10000);
  Words const soon{"--join-timeout", "2"};
  auto const printed = trainer.two_say(trainer.as_rank(0, port, soon), trainer.as_rank(0, port, soon));
  check_quoted(printed, "(Address already in use); another run of the same name is running on this host");
  check_quoted(printed, "text_classification: launch: of 2 ranks these have not joined within ");
}

TEST_CASE("the first line reports the numbers of ranks and devices") {
  Trainer const trainer;
  check_quoted(trainer.printed_by({"--max-steps", "1"}),
               "text_classification: single, 1 rank x 1 device x 1 thread, engine self, ");
  check_quoted(
      trainer.printed_by({"--max-steps", "1", "--parallel", "dp", "--devices", "8", "--batch-size", "4"}),
      "note: --parallel dp with 8 devices: the first device sums all gradients and makes all updates, which takes "
      "longer with each device; --parallel ddp is faster beyond 4");
}

#if !LOCKSTEP_SANITIZED  // sanitizers reserve more address space than is left
TEST_CASE("an out-of-memory error is reported with the size of a device's memory") {
  Trainer const trainer;
  check_quoted(trainer.printed_by({"--dry-run"}),
               " MB on a device for parameters, gradients, optimizer and the first batch's "
               "activations");
  auto const with_limit = [&](rlim_t mebibytes, Words const& more, int code) {
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    rlimit const tight{std::min<rlim_t>(before.rlim_max, mebibytes << 20), before.rlim_max};
    ::setrlimit(RLIMIT_AS, &tight);
    Words all{"--data", trainer.data, "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    Program large(example("text_classification"), all);
    ::setrlimit(RLIMIT_AS, &before);
    auto const outcome = large.wait(60);
    CHECK(outcome.exit_code == code);
    return outcome.err;
  };
  auto const refused = with_limit(2048, {"--d-model", "4096", "--feed-forward", "16384", "--num-layers", "8"}, 2);
  check_quoted(refused, "text_classification: Trainer: 1611632644 parameters need at least ");
  check_quoted(refused, " of host memory before the first batch, for values, gradients, 2 optimizer moments");
  check_quoted(refused, " GiB are free; raise the limit (ulimit -v), or use a smaller model");
  auto const failed = with_limit(1200,
                                 {"--d-model", "16", "--num-heads", "2", "--feed-forward", "65536", "--num-layers", "8",
                                  "--batch-size", "120", "--max-steps", "1"},
                                 1);
  check_quoted(failed, "text_classification: out of memory: the host, or a limit such as ulimit -v, refused ");
  check_quoted(
      failed,
      " in all); a smaller --batch-size with more --grad-accum-steps, --precision bf16 or a smaller --prefetch "
      "need less");
}
#endif

TEST_CASE("a killed rank is reported, with the kernel's most frequent reason") {
  Trainer const trainer;
  auto const run = trainer.long_run({});
  ::kill(run->children().back(), SIGKILL);
  check_quoted(run->wait(60).err,
               "was killed by signal 9 (Killed); the kernel does that when memory runs out, which dmesg "
               "reports");
}

TEST_CASE("runs that need not agree, and slower devices, are reported") {
  Trainer const trainer;
  auto const& folder = trainer.folder;
  trainer.printed_by({"--epochs", "2", "--save-dir", folder / "single"});
  trainer.printed_by({"--epochs", "2", "--save-dir", folder / "ddp", "--nproc", "2"});
  auto const scaled =
      trainer.printed_by({"--epochs", "2", "--save-dir", folder / "a2", "--nproc", "2", "--lr-scaling", "linear"});
  check_quoted(scaled, "note: the learning rate is scaled up without warm-up; --warmup-epochs 1 makes the start safer");
  auto const compared = run_example("compare", {folder / "single", folder / "ddp", folder / "a2"}).out;
  check_quoted(compared, "ddp and single took other steps or batches, so they need not agree.");
  check_quoted(compared, "it has lr-scaling \"linear\" (\"none\").");
  check_quoted(compared, " times as fast as one, ");
  check_quoted(read_file(folder / "single/run.json"), "the run is bound by ");
}

TEST_CASE("ranks with other flags are refused before the first step") {
  Trainer const trainer;
  auto const port = std::to_string(30000 + ::getpid() % 10000);
  auto const printed =
      trainer.two_say(trainer.as_rank(0, port, {"--lr", "0.001"}), trainer.as_rank(1, port, {"--lr", "0.002"}));
  check_quoted(printed,
               "rank 1 has optimizer: learning rate = 0.002, but rank 0 has optimizer: learning rate = 0.001; start "
               "all ranks with the same program, flags and data, on one kind of processor");
}

TEST_CASE("an awaited rank is named") {
  Trainer const trainer;
  auto const run = trainer.long_run({"--stall-timeout", "2"});
  ::kill(run->children().back(), SIGSTOP);
  auto const printed = run->wait(60).err;
  check_quoted(printed, "It is alive; the limit of ");
  check_quoted(printed, " s in operation ");
}
