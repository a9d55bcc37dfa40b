// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "examples/program.hpp"

using namespace lockstep_test;
namespace fs = std::filesystem;

namespace {

std::string rows(int count) {
  std::string csv;
  for (int i = 0; i < count; ++i)
    csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title " + std::to_string(i) + "\",\"some \"\"quoted\"\" words\"\n";
  return csv;
}

// Invalid input causes one clear sentence, exit code 2, no partial files, and no delay.
struct Refusal {
  std::vector<std::string> arguments;
  std::vector<std::string> phrases;  // each in the sentence
};

void check_refused(TemporaryFolder const& folder, Refusal const& refusal) {
  auto arguments = refusal.arguments;
  auto const save_dir = folder / "saved";
  arguments.insert(arguments.end(), {"--save-dir", save_dir});
  std::string line;
  for (auto const& argument : refusal.arguments) line += " " + argument;
  CAPTURE(line);
  auto const outcome = run_example("text_classification", arguments, 60);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.lines_of_err() >= 1);
  CHECK(outcome.lines_of_err() <= 4);
  for (auto const& part : refusal.phrases) CHECK_MESSAGE(contains(outcome.err, part), "not in the output: ", part);
  CHECK_FALSE(contains(outcome.err, "terminate called"));
  CHECK(outcome.out.empty());
  CHECK_FALSE(fs::exists(save_dir));
}

}  // namespace

TEST_CASE("unreadable data are refused with file, line and expected value") {
  TemporaryFolder const folder;
  auto const data = [&](std::string const& name, std::string const& text) { return save(folder, name, text); };
  auto const missing = folder / "missing.csv";
  auto const short_row = data("short_row.csv", rows(20) + "\"3\",\"only a title\"\n" + rows(3));
  auto const long_row = data("long_row.csv", rows(4) + "\"3\",\"title\",\"text\",\"more\"\n");
  auto const open_quote = data("open_quote.csv", rows(6) + "\"3\",\"title\",\"text without an end\n");
  auto const after_quote = data("after_quote.csv", rows(2) + "\"3\",\"title\"x,\"text\"\n");
  auto const label = data("label.csv", rows(9) + "\"5\",\"title\",\"text\"\n");
  auto const word = data("word.csv", rows(9) + "\"sport\",\"title\",\"text\"\n");
  auto const sentiment = data("sentiment.csv", "review,sentiment\n\"fine\",positive\n\"so so\",neutral\n");
  auto const header = data("header.csv", "text,label\nfine,1\n");
  auto const empty = data("empty.csv", "");
  auto const only_header = data("only_header.csv", "review,sentiment\n");
  auto const noise = data("noise.csv", std::string("\x7f"
                                                   "ELF\x02\x01\x00\xff\xfe\x00\x80\n\x1b[31m\x00",
                                                   19) +
                                           std::string(4096, '\xf7'));
  auto const latin = data("latin.csv", rows(2) + "\"3\",\"caf\xe9\",\"text\"\n");
  fs::create_directory(folder / "folder");
  auto const good = data("good.csv", rows(64));

  std::vector<Refusal> const refusals{
      {{"--data", missing}, {missing, "No such file"}},
      {{"--data", "/proc/self/mem"}, {"/proc/self/mem"}},
      {{"--data", folder / "folder"}, {folder / "folder", "directory"}},
      {{"--data", short_row}, {"short_row.csv", "21", "3", "2"}},
      {{"--data", long_row}, {"long_row.csv", "5", "3", "4"}},
      {{"--data", open_quote}, {"open_quote.csv", "7", "quote"}},
      {{"--data", after_quote}, {"after_quote.csv", "3", "quote"}},
      {{"--data", label}, {"label.csv", "10", "5", "from 1 to 4"}},
      {{"--data", word}, {"word.csv", "10", "sport"}},
      {{"--data", sentiment}, {"sentiment.csv", "3", "neutral", "positive"}},
      {{"--data", header}, {"header.csv", "1"}},
      {{"--data", empty}, {"empty.csv", "at least one sample"}},
      {{"--data", only_header}, {"only_header.csv", "at least one sample"}},
      {{"--data", noise}, {"noise.csv"}},
      {{"--data", latin}, {"latin.csv:3: byte", "is not UTF-8", "--encoding", "latin-1"}},
      {{"--data", latin, "--encoding", "ascii"}, {"latin.csv:3: byte", "is not ascii"}},
      {{"--data", latin, "--encoding", "klingon"}, {"encoding \"klingon\"", "iconv -l"}},
      {{"--data", good, "--eval-data", missing}, {missing}},
      {{"--data", good, "--eval-data", label}, {"label.csv", "10", "5"}},
      {{"--data", short_row, "--nproc", "3"}, {"short_row.csv", "21"}},
      {{"--data", short_row, "--parallel", "ddp", "--devices", "3"}, {"short_row.csv", "21"}},
      {{"--data", "files:one"}, {"\"one\"", "NAME=GLOB"}},
      {{"--data", "files:one", "--encoding", "latin-1"}, {"--encoding latin-1", "leave it out"}},
      {{"--data", "files:one=" + (folder / "nothing*")}, {"nothing*"}},
      {{"--data", "files:one=" + (folder / "g*.csv")}, {"at least two"}},
  };
  for (auto const& refusal : refusals) check_refused(folder, refusal);
}

TEST_CASE("a pipe in place of a file is refused at once, before and after ranks start") {
  TemporaryFolder const folder;
  auto const good = save(folder, "good.csv", rows(64)), pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::vector<Refusal> const refusals{
      {{"--config", pipe, "--data", good}, {"--config " + pipe + ": is not a regular file", "--config -"}},
      {{"--data", pipe}, {pipe + ": is not a regular file"}},
      {{"--data", "-"}, {"--data -: every rank reads the data"}},
  };
  for (auto const& refusal : refusals) check_refused(folder, refusal);

  auto const checkpoints = folder / "run/checkpoints";
  fs::create_directories(checkpoints);
  REQUIRE(::mkfifo((checkpoints + "/step_3.safetensors").c_str(), 0600) == 0);
  std::vector<std::vector<std::string>> const of_ranks{
      {"--init-from", pipe}, {"--save-dir", folder / "run", "--resume", "auto", "--nproc", "2"}};
  for (auto arguments : of_ranks) {
    arguments.insert(arguments.end(), {"--data", good, "--d-model", "16", "--max-steps", "1"});
    auto const outcome = run_example("text_classification", arguments, 20);
    CHECK(outcome.exit_code == 2);
    CHECK_MESSAGE(contains(outcome.err, ": is not a regular file; every rank reads it, so copy it to one"),
                  outcome.err);
  }
}

TEST_CASE("an invalid configuration file is refused with its line") {
  TemporaryFolder const folder;
  auto const good = save(folder, "good.csv", rows(12));
  auto const config = [&](std::string const& name, std::string const& text) { return save(folder, name, text); };
  std::vector<Refusal> const refusals{
      {{"--config", folder / "none.yaml"}, {"none.yaml", "No such file"}},
      {{"--config", config("name.yaml", "training:\n  epochs: 2\n  bacth_size: 8\n")},
       {"name.yaml:3: unknown name bacth_size", "the nearest is batch-size"}},
      {{"--config", config("value.yaml", "epochs: many\n")}, {"value.yaml:1", "--epochs many", "from 1 to"}},
      {{"--config", config("twice.json", "{\"lr\": 1,\n \"learning_rate\": 2}")}, {"twice.json:2", "line 1 too"}},
      {{"--config", config("list.yaml", "epochs: [1, 2]\n"), "--nproc", "2"}, {"list.yaml:1", "not a list"}},
      {{"--config", config("broken.yaml", "epochs: 1\n  lr: 2\n")}, {"broken.yaml:2", "is not YAML or JSON"}},
      {{"--config", config("both.yaml", "nproc: 2\nparallel: dp\n")}, {"--parallel dp", "--nproc 2"}},
  };
  for (auto refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.end(), {"--data", good});
    check_refused(folder, refusal);
  }
}

TEST_CASE("a dry run reports the training plan, refuses invalid input, and writes nothing") {
  TemporaryFolder const folder;
  auto const good = save(folder, "good.csv", rows(120)), bad = save(folder, "bad.csv", rows(9) + "\"5\",\"a\",\"b\"\n");
  auto const config =
      save(folder, "run.yaml", "training: {epochs: 2, batch_size: 4, lr: 0.01}\nmodel: {d_model: 16}\n");
  auto const save_dir = folder / "saved";
  for (auto const& ranks : {std::vector<std::string>{"--nproc", "2"}, {"--devices", "2"}}) {
    std::vector<std::string> arguments{"--config", config, "--data", good, "--save-dir", save_dir, "--dry-run"};
    arguments.insert(arguments.end(), ranks.begin(), ranks.end());
    auto const outcome = run_example("text_classification", arguments, 60);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "batch 4 per rank or device, effective batch 8, "));
    CHECK(contains(outcome.out, "dry run: 108 samples, 14 steps an epoch, 28 in all; "));
    CHECK(contains(outcome.out, "nothing was trained, and nothing written"));
    CHECK_FALSE(contains(outcome.out, "epoch 1/2"));
    CHECK_FALSE(fs::exists(save_dir));
  }
  check_refused(folder, {{"--data", bad, "--dry-run"}, {"bad.csv", "10", "5"}});
  check_refused(folder, {{"--data", good, "--dry-run", "--batch-size", "0"}, {"--batch-size 0"}});
}

TEST_CASE("invalid flags are refused with the value and a remedy") {
  TemporaryFolder const folder;
  auto const good = save(folder, "good.csv", rows(12));
  std::vector<Refusal> const refusals{
      {{"--batch-size", "0"}, {"--batch-size 0", "from 1 to"}},
      {{"--batch-size", "-8"}, {"--batch-size -8", "from 1 to"}},
      {{"--lr", "nan"}, {"--lr nan", "a number of 0 or more"}},
      {{"--lr", "quick"}, {"--lr quick", "a number of 0 or more"}},
      {{"--lerning-rate", "1"}, {"unknown flag --lerning-rate", "the nearest is --"}},
      {{"--bacth-size", "8"}, {"unknown flag --bacth-size", "--batch-size"}},
      {{"--doctr"}, {"unknown flag --doctr", "--doctor"}},
      {{"--doctor", "--patience", "2"}, {"--doctor with --patience", "leave out either"}},
      {{"--shard-optimizer", "--devices", "2"}, {"--shard-optimizer with --parallel dp", "use --parallel ddp"}},
      {{"--timed-products", "--backend", "host"}, {"--timed-products with --backend host", "leave it out"}},
      {{"--gradient-wire", "bf16"}, {"--gradient-wire bf16 with --parallel single", "use --parallel ddp"}},
      {{"--gradient-wire", "fp16", "--nproc", "2"}, {"--gradient-wire fp16 with --precision fp32", "bf16"}},
      {{"--resume", "nowhere"}, {"--resume nowhere: there is no such file"}},
      {{"--parallel", "ddp", "--devices", "0"}, {"--devices 0", "from 1 to"}},
      {{"--parallel", "single", "--nproc", "2"}, {"--parallel single", "--nproc 2"}},
      {{"--parallel", "dp", "--nproc", "2"}, {"--parallel dp", "--nproc 2"}},
      {{"--backend", "cuda"}, {"--backend cuda", "--backend host"}},
      {{"--gpu-ids", "7"}, {"--gpu-ids 7", "no such GPU"}},
      {{"--nproc", "2", "--global-batch-size", "33"}, {"--global-batch-size 33", "nearest that fits is 34"}},
      {{"--reproducible", "6"}, {"--reproducible 6", "the nearest is 4"}},
      {{"--nproc", "3", "--reproducible", "4"},
       {"--reproducible 4", "ranks or devices, 3,", "the nearest that does is"}},
      {{"--reproducible", "4", "--batch-size", "6"}, {"--batch-size 6", "nearest that fits is 8"}},
      {{"--d-model", "100", "--num-heads", "3"}, {"--d-model 100", "--num-heads 3"}},
      {{"--nproc", "16"}, {"16 ranks", "samples", "--nproc"}},
      {{"--parallel", "dp", "--devices", "16"}, {"16 devices", "samples"}},
  };
  for (auto refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.end(), {"--data", good});
    check_refused(folder, refusal);
  }
}

TEST_CASE("a directory with a run is refused and left unchanged") {
  TemporaryFolder const folder;
  auto const good = save(folder, "good.csv", rows(12));
  fs::create_directory(folder / "old");
  save(folder, "old/run.json", "{}");
  auto const outcome = run_example("text_classification", {"--data", good, "--save-dir", folder / "old"});
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.err, "already holds a run"));
  CHECK(read_file(folder / "old/run.json") == "{}");
  CHECK(std::distance(fs::directory_iterator(folder / "old"), fs::directory_iterator()) == 1);
}
