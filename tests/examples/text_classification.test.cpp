// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/json.hpp>

#include "examples/program.hpp"
#include "examples/story_commands.hpp"

using namespace lockstep;
using namespace lockstep_test;
namespace fs = std::filesystem;

namespace {

// Four topics with their own words among common ones, and a quoted field over two lines.
std::string news(int first, int count) {
  std::string csv;
  for (int i = first; i < first + count; ++i) {
    auto const topic = std::to_string(i % 4 + 1);
    csv += "\"" + topic + "\",\"title " + std::to_string(i % 7) + "\",\"the \"\"word" + topic + "\"\" and word" +
           topic + std::to_string(i % 3) + (i % 5 == 0 ? "\nover lines" : ", more") + "\"\n";
  }
  return csv;
}

// Runs a small training and returns its saved files.
json::Value trained(TemporaryFolder const& folder, std::string const& name, std::vector<std::string> flags) {
  auto const directory = folder / name;
  flags.insert(flags.end(),
               {"--data", folder / "train.csv", "--save-dir", directory, "--d-model", "16", "--feed-forward", "32",
                "--num-heads", "2", "--global-batch-size", "12", "--threads", "1"});
  if (std::ranges::find(flags, "--epochs") == flags.end()) flags.insert(flags.end(), {"--epochs", "2"});
  auto const outcome = run_example("text_classification", flags);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(read_file(directory + "/run.json"), name);
}

std::string sha(json::Value const& run) { return run.at("parameters_sha256").string(); }

// Checks the files of --trace: ten steps of two ranks, with layers by name, and a row for each layer.
void check_trace(std::string const& directory) {
  auto const trace = json::parse(read_file(directory + "/trace.json"), "trace.json");
  for (int rank : {0, 1}) {
    auto const count = [&](std::string const& name) {
      return std::ranges::count_if(trace.at("traceEvents").array(), [&](auto const& event) {
        return event.at("pid").integer() == rank && event.at("ph").string() == "X" &&
               event.at("name").string().starts_with(name);
      });
    };
    CHECK(count("step ") == 10);
    CHECK(count("encoder.0.attention.query") == 20);
    CHECK(count("head") == 20);
    CHECK(count("bucket 0") == 10);
    CHECK(count("write") >= 9);
  }
  auto const layers = read_file(directory + "/layers.csv");
  for (char const* name : {"\"embedding\",\"FusedEmbedding\",1,", "\"head\",\"Linear\",1,", "\"\",\"mean_pool\",1,"})
    CHECK_MESSAGE(contains(layers, name), name);
}

// Checks one line per text in order, with as many correct ones as the evaluation reports.
void check_predictions(std::string const& csv, int texts, double accuracy) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "text,label,predicted");
  int right = 0, count = 0;
  for (; std::getline(lines, line); ++count) {
    auto const label = line.find(','), predicted = line.rfind(',');
    CHECK(line.substr(0, label) == std::to_string(count));
    right += line.substr(label + 1, predicted - label - 1) == line.substr(predicted + 1);
  }
  CHECK(count == texts);
  CHECK(right == doctest::Approx(accuracy * texts));
}

}  // namespace

TEST_CASE("dp, ddp over threads and ddp over processes learn bit-identically, and single within rounding") {
  TemporaryFolder const folder;
  save(folder, "train.csv", news(0, 100));  // 100 = 8 steps of 12 and a short one
  save(folder, "test.csv", news(3, 30));
  auto const single = trained(folder, "single", {});
  auto const dp = trained(folder, "dp", {"--parallel", "dp", "--devices", "2", "--predictions", folder / "dp.csv"});
  auto const threads = trained(folder, "threads", {"--parallel", "ddp", "--devices", "2"});
  auto const processes = trained(folder, "processes", {"--nproc", "2", "--predictions", folder / "processes.csv"});
  CHECK(sha(dp).size() == 64);
  CHECK(sha(dp) == sha(threads));
  CHECK(sha(dp) == sha(processes));
  CHECK(single.at("steps") == dp.at("steps"));
  auto const loss = [](json::Value const& run) { return run.at("final").at("eval_loss").number(); };
  CHECK(std::abs(loss(single) - loss(dp)) <= 1e-3);
  CHECK(loss(dp) == loss(processes));
  auto const predictions = read_file(folder / "dp.csv");
  CHECK(predictions == read_file(folder / "processes.csv"));
  check_predictions(predictions, 30, dp.at("final").at("eval_accuracy").number());

  SUBCASE("and so do repeated runs with any workers, threads, prefetch and buckets") {
    CHECK(sha(trained(folder, "again", {"--nproc", "2", "--trace"})) == sha(dp));
    check_trace(folder / "again");
    CHECK(sha(trained(folder, "workers", {"--nproc", "2", "--num-workers", "3", "--prefetch", "7"})) == sha(dp));
    CHECK(sha(trained(folder, "alone", {"--nproc", "2", "--num-workers", "0"})) == sha(dp));
    CHECK(sha(trained(folder, "buckets", {"--nproc", "2", "--bucket-cap-mb", "0.001"})) == sha(dp));
    CHECK(sha(trained(folder, "seed", {"--nproc", "2", "--seed", "2"})) != sha(dp));
    auto const sharded = trained(folder, "sharded", {"--nproc", "2", "--shard-optimizer"});
    CHECK(sha(sharded) == sha(dp));
    CHECK(sharded.at("shard_optimizer").boolean());
    auto const peak = [](json::Value const& run) {
      return run.at("peak_bytes_per_device").at(std::size_t{1}).number();
    };
    CHECK(peak(processes) - peak(sharded) >= 0.8 * 4 * sharded.at("parameters").number());  // half of two moments
  }
  SUBCASE("and four ranks equal two with two micro-batches") {
    auto const four = trained(folder, "four", {"--nproc", "4"});
    auto const two = trained(folder, "two", {"--nproc", "2", "--grad-accum-steps", "2"});
    CHECK(four.at("effective_batch_size").integer() == 12);
    CHECK(two.at("batch_size").integer() == 3);
    CHECK(std::abs(loss(four) - loss(dp)) <= 1e-3);
    CHECK(std::abs(loss(two) - loss(dp)) <= 1e-3);
  }
  SUBCASE("and compare agrees") {
    std::vector<std::string> const all{folder / "single", folder / "dp", folder / "threads", folder / "processes"};
    auto const outcome = run_example("compare", all);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(contains(outcome.out, "threads and dp agree: their parameters are equal bit for bit"));
    CHECK(contains(outcome.out, "processes and dp agree: their parameters are equal bit for bit"));
    CHECK(contains(outcome.out, "dp and single agree"));
    CHECK(contains(outcome.out, "speed-up"));
    CHECK(contains(outcome.out, "2 devices train "));
  }
}

TEST_CASE("ranks that send 16-bit gradients send half the bytes, and learn equally within rounding") {
  TemporaryFolder const folder;
  save(folder, "train.csv", news(0, 100));
  save(folder, "test.csv", news(3, 30));
  auto const run = [&](std::string const& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--lr", "0.005", "--epochs", "5"});
    return trained(folder, name, std::move(flags));
  };
  auto const plain = run("plain", {"--nproc", "2"}), wired = run("wired", {"--nproc", "2", "--gradient-wire", "bf16"});
  CHECK(plain.find("gradient_wire") == nullptr);
  CHECK(wired.at("gradient_wire").string() == "bf16");
  CHECK(sha(wired) != sha(plain));
  CHECK(sha(wired) == sha(run("other", {"--parallel", "ddp", "--devices", "2", "--gradient-wire", "bf16",
                                        "--bucket-cap-mb", "0.001", "--shard-optimizer"})));
  auto const bytes = [](json::Value const& of) {
    double all = 0;
    for (auto const& bucket : of.at("buckets").array()) all += bucket.at("bytes").number();
    return all;
  };
  CHECK(2 * bytes(wired) == bytes(plain));
  // A gradient is rounded twice, by at most 2^-9 of its value each time. So are the steps, and their change of the
  // loss.
  auto const loss = [](json::Value const& of) { return of.at("final").at("eval_loss").number(); };
  auto const loss_decrease = std::log(4.0) - loss(plain);
  CHECK(loss_decrease > 0.3);
  CHECK(std::abs(loss(wired) - loss(plain)) <= 0x1p-8 * loss_decrease);
  // In float16 the first steps are skipped, a tenth of all, until the loss scale fits the sums.
  auto const half = run("half", {"--nproc", "2", "--gradient-wire", "fp16", "--precision", "fp16"});
  CHECK(half.at("skipped_steps").integer() * 10 <= half.at("steps").integer());
  CHECK(std::abs(loss(half) - loss(plain)) <= 0.1 * loss_decrease);
}

TEST_CASE("with --reproducible, one rank, two devices and four ranks learn equally, also in succession") {
  TemporaryFolder const folder;
  save(folder, "train.csv", news(0, 100));
  save(folder, "test.csv", news(3, 30));
  auto const run = [&](std::string const& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--reproducible", "4"});
    return trained(folder, name, std::move(flags));
  };
  auto const single = run("single", {"--max-steps", "7"});
  CHECK(single.at("reproducible").integer() == 4);
  CHECK(single.at("batch_size").integer() == 12);
  for (auto const& other :
       {run("dp", {"--max-steps", "7", "--parallel", "dp"}), run("four", {"--max-steps", "7", "--nproc", "4"})}) {
    CHECK(sha(other) == sha(single));
    CHECK(other.at("final") == single.at("final"));
    CHECK(other.at("steps") == single.at("steps"));
  }
  auto const on = [&](std::string const& name) { return folder / name + "/checkpoints/step_7.safetensors"; };
  auto const more = run("more", {"--nproc", "2", "--resume", on("single")});
  CHECK(sha(more) == sha(run("other", {"--resume", on("four")})));
  auto const outcome = run_example("compare", {folder / "single", folder / "dp", folder / "four"});
  CHECK(contains(outcome.out, "four and single agree: their parameters are equal bit for bit"));
  auto const refused =
      run_example("text_classification",
                  {"--data", folder / "train.csv", "--resume", on("single"), "--reproducible", "2", "--d-model", "16",
                   "--feed-forward", "32", "--num-heads", "2", "--global-batch-size", "12", "--threads", "1"});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err,
                 "was saved with --reproducible and 4 shards, but training would continue with --reproducible "
                 "and 2 shards"));
}

TEST_CASE("a run writes run.json, metrics and parameters, and prints no control characters") {
  TemporaryFolder const folder;
  save(folder, "data.csv", news(0, 100));
  auto const outcome = run_example("text_classification",
                                   {"--data", folder / "data.csv", "--nproc", "2", "--batch-size", "8", "--epochs", "3",
                                    "--d-model", "16", "--threads", "1", "--save-dir", folder / "deep/run"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(contains(outcome.out, "ddp, 2 ranks x 1 device"));
  CHECK(contains(outcome.out, "engine process"));
  CHECK(contains(outcome.out, "effective batch 16"));
  CHECK(contains(outcome.out, "parameters"));
  CHECK(std::ranges::none_of(outcome.out, [](char c) { return c == '\x1b' || c == '\r'; }));

  auto const run = json::parse(read_file(folder / "deep/run/run.json"));
  CHECK(run.at("schema").integer() == 1);
  CHECK(run.at("example").string() == "text_classification");
  CHECK(run.at("parallel").string() == "ddp");
  CHECK(run.at("backend").string() == "host");
  CHECK(run.at("engine").string() == "process");
  CHECK(run.at("world_size").integer() == 2);
  CHECK(run.at("steps").integer() == 3 * 6);  // 90 samples: a tenth is held out
  CHECK(run.at("final").at("eval_samples").integer() == 10);
  CHECK(run.at("samples_per_second").number() > 0);
  CHECK(run.at("peak_bytes_per_device").array().size() == 2);
  REQUIRE(run.at("ranks_ms").array().size() == 2);
  for (auto const& rank : run.at("ranks_ms").array()) CHECK(rank.at("compute").number() > 0);

  auto const metrics = read_file(folder / "deep/run/metrics.jsonl");
  CHECK(std::ranges::count(metrics, '\n') >= 10);
  auto const saved = folder / "deep/run/checkpoints/step_18.safetensors";
  REQUIRE(fs::exists(saved));
  CHECK(contains(read_file(saved), "word1"));  // the vocabulary is saved with the parameters
  CHECK(contains(read_file(saved), "encoder.0.attention.query.weight"));
}

TEST_CASE("reviews and files by pattern are read as well") {
  TemporaryFolder const folder;
  std::string reviews = "review,sentiment\n";
  for (int i = 0; i < 40; ++i)
    reviews += i % 2 == 0 ? "\"a fine, fine caf\xe9\",positive\n" : "\"a bad \"\"film\"\"\",negative\n";
  save(folder, "reviews.csv", reviews);  // Latin-1
  std::vector<std::string> const small{"--d-model", "16",           "--max-steps", "40",   "--epochs",
                                       "40",        "--batch-size", "8",           "--lr", "0.01"};
  auto flags = small;
  flags.insert(flags.end(),
               {"--data", folder / "reviews.csv", "--encoding", "latin-1", "--save-dir", folder / "reviews"});
  CHECK(run_example("text_classification", flags).exit_code == 0);
  auto const run = json::parse(read_file(folder / "reviews/run.json"));
  CHECK(run.at("steps").integer() == 40);
  CHECK(run.at("final").at("eval_accuracy").number() == 1);
  CHECK(run.at("precision").string() == "fp32");
  std::string parameters;
  for (auto const& file : fs::directory_iterator(folder / "reviews/checkpoints")) parameters = file.path().string();
  CHECK(contains(read_file(parameters), "caf\u00e9"));

  for (std::string const precision : {"bf16", "fp16"}) {
    flags = small;
    flags.insert(flags.end(), {"--data", folder / "reviews.csv", "--encoding", "latin-1", "--save-dir",
                               folder / precision, "--precision", precision});
    CHECK(run_example("text_classification", flags).exit_code == 0);
    auto const rounded = json::parse(read_file(folder / precision + "/run.json"));
    CHECK(rounded.at("final").at("eval_accuracy").number() == 1);
    CHECK(rounded.at("precision").string() == precision);
  }

  for (int i = 0; i < 8; ++i) {
    std::string apples, pears;
    for (int k = 0; k < 80; ++k) apples += "apple red round ", pears += "pear green long ";
    save(folder, "apple" + std::to_string(i) + ".txt", apples);
    save(folder, "pear" + std::to_string(i) + ".txt", pears);
  }
  flags = small;
  flags.insert(flags.end(), {"--data", "files:apples=" + (folder / "apple*.txt") + ",pears=" + (folder / "pear*.txt"),
                             "--save-dir", folder / "files"});
  CHECK(run_example("text_classification", flags).exit_code == 0);
  CHECK(json::parse(read_file(folder / "files/run.json")).at("final").at("eval_accuracy").number() == 1);
}

namespace {

/// Rows (text, label) of three departments, whose words differ.
std::vector<std::pair<std::string, std::string>> tickets(int first, int count) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (int i = first; i < first + count; ++i) {
    std::string const department = i % 3 == 0 ? "network" : i % 3 == 1 ? "billing" : "hardware";
    rows.emplace_back("the " + department + "_word, again and ticket" + std::to_string(i % 5), department);
  }
  return rows;
}
std::string table_of(std::vector<std::pair<std::string, std::string>> const& rows, std::string const& separator) {
  std::string table = "id" + separator + "label" + separator + "text\n";
  for (auto const& [text, label] : rows) table += "7" + separator + label + separator + '"' + text + "\"\n";
  return table;
}
std::string json_lines_of(std::vector<std::pair<std::string, std::string>> const& rows) {
  std::string lines;
  for (auto const& [text, label] : rows) lines += R"({"label": ")" + label + R"(", "text": ")" + text + "\"}\n";
  return lines;
}
std::vector<std::string> const tiny{"--d-model",      "8", "--num-layers", "1", "--num-heads", "1",   "--threads", "1",
                                    "--feed-forward", "8", "--batch-size", "8", "--lr",        "0.02"};
Outcome run_tiny(std::vector<std::string> flags) {
  flags.insert(flags.end(), tiny.begin(), tiny.end());
  return run_example("text_classification", flags);
}

}  // namespace

TEST_CASE("tables with columns text and label have classes of their own, equally as CSV, TSV and JSON lines") {
  TemporaryFolder const folder;
  auto const train = tickets(0, 90), test = tickets(1, 30);
  save(folder, "train.csv", table_of(train, ","));
  save(folder, "test.csv", table_of(test, ","));
  fs::create_directories(folder / "tsv");
  save(folder, "tsv/train.tsv", table_of(train, "\t"));
  save(folder, "tsv/test.tsv", table_of(test, "\t"));
  save(folder, "train.jsonl", json_lines_of(train));
  save(folder, "test.jsonl", json_lines_of(test));
  std::string first, predictions;
  for (std::string const name : {"train.csv", "tsv/train.tsv", "train.jsonl"}) {
    CAPTURE(name);
    auto const saved = folder / ("run" + fs::path(name).extension().string());
    auto const outcome = run_tiny(
        {"--data", folder / name, "--epochs", "10", "--save-dir", saved, "--predictions", folder / "table.csv"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    auto const run = json::parse(read_file(saved + "/run.json"));
    CHECK(run.at("final").at("eval_samples").integer() == 30);
    CHECK(run.at("final").at("eval_accuracy").number() == 1);
    if (first.empty()) first = sha(run), predictions = read_file(folder / "table.csv");
    CHECK(sha(run) == first);
    CHECK(read_file(folder / "table.csv") == predictions);
  }
  CHECK(predictions.starts_with("text,label,predicted\n0,billing,billing\n1,hardware,hardware\n2,network,network\n"));

  std::string other = "department;x,what happened\n";  // names of its own, a third part of each word
  for (auto const& [text, label] : train) other += label + ",\"" + text + "\"\n";
  auto const named = run_tiny({"--data", save(folder, "other.csv", other), "--max-steps", "1", "--text-column",
                               "what happened", "--label-column", "department;x"});
  CAPTURE(named.err);
  CHECK(named.exit_code == 0);

  std::string numbers = "label,text\n";
  for (int i = 0; i < 24; ++i) numbers += std::to_string(8 + i % 3) + ",a text\n";
  REQUIRE(
      run_tiny({"--data", save(folder, "numbers.csv", numbers), "--max-steps", "1", "--save-dir", folder / "numbers"})
          .exit_code == 0);
  CHECK(contains(read_file(folder / "numbers/checkpoints/step_1.safetensors"), R"(8\n9\n10\n)"));  // not 10, 8, 9

  std::string published =
      "Class Index,Title,Description\n" + news(0, 40);  // with the names that copies of AG News have
  CHECK(run_tiny({"--data", save(folder, "published.csv", published), "--max-steps", "1"}).exit_code == 0);
}

TEST_CASE("a table that cannot be used is refused with its line, the value and a flag or a change that helps") {
  TemporaryFolder const folder;
  auto const refused = [&](std::string const& name, std::string const& text, std::vector<std::string> const& words,
                           std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--data", save(folder, name, text), "--save-dir", folder / "saved"});
    auto const outcome = run_tiny(flags);
    CAPTURE(text);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    for (auto const& each : words) CHECK_MESSAGE(contains(outcome.err, each), each);
    CHECK_FALSE(fs::exists(folder / "saved"));
  };
  refused("a.csv", "id,department,message\n1,x,y\n",
          {"a.csv:1: has the columns \"id\", \"department\", \"message\"", "--text-column and --label-column"});
  refused("a.csv", "text,label\n", {"a.csv: holds a header and no rows"});
  refused("a.csv", "text,label\na,x\nb,\nc,y\n", {"a.csv:3: the label is empty; give one, or remove the row"});
  refused("a.csv", "text,label\na,x\nb,\"y\nz\"\n", {"a.csv:3: the label has a line break"});
  refused("a.csv", "text,label\na,x\nb,x\n", {"a.csv: each label is \"x\", and training needs two classes"});
  refused("a.csv", "text,label\n1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n7,g\n8,h\n", {"each of the 8 labels occurs once"});
  refused("a.csv", "text,label\na,x\nb,y\n", {"no column is named \"lable\"; the nearest is \"label\""},
          {"--label-column", "lable"});
  refused("a.csv", "text,label\na,x\nb,y\nc,z,z\n", {"a.csv:4: has 3 columns"});
  auto const other = save(folder, "other.csv", "text,label\na,x\nb,why\n");
  refused("a.csv", "text,label\na,x\nb,y\nc,x\n",
          {"other.csv:3: label \"why\": is not a class of the training data; the nearest is \"y\""},
          {"--eval-data", other});
  refused("a.jsonl", "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"a\"}\n",
          {"a.jsonl:2: has no \"label\"", "--label-column"});
  refused("a.jsonl", "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": 1.5, \"label\": 3}\n",
          {"a.jsonl:2: \"text\" is number; it must be a string"});
  refused("a.jsonl", "[1]\n", {"a.jsonl:1: is no object, but array"});
  refused("a.csv", "\"\",\"title\",\"text\"\n" + news(0, 8), {"a.csv:1: has the columns \"\", \"title\", \"text\""});
  refused("a.csv", news(0, 8) + "\"\",\"title\",\"text\"\n", {"label \"\": must be from 1 to 4"});
  refused("a.csv", news(0, 8) + "\"14\",\"title\",\"text\"\n", {"label 14: must be from 1 to 4"});
  auto const outcome = run_tiny({"--text-column", "words"});
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.err, "--text-column and --label-column apply to tables"));
}

TEST_CASE("--predictions does not replace a file that was found next to the training data, or by a pattern") {
  TemporaryFolder const folder;
  save(folder, "train.csv", news(0, 40));
  save(folder, "test.csv", news(0, 8));
  std::string apples, pears;
  for (int k = 0; k < 80; ++k) apples += "apple red round ", pears += "pear green long ";
  auto const pattern = "files:a=" + save(folder, "apple.txt", apples) + ",b=" + save(folder, "pear.txt", pears);
  for (auto const& [data, table] :
       {std::pair{folder / "train.csv", folder / "test.csv"}, {pattern, folder / "pear.txt"}}) {
    auto const before = read_file(table);
    auto const outcome = run_tiny({"--data", data, "--max-steps", "1", "--predictions", table});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, "--predictions " + table + ": is a file that the run reads"));
    CHECK(read_file(table) == before);
  }
}

TEST_CASE("predictions of held-out texts have their rows in the table, and --evaluate holds out the same texts") {
  TemporaryFolder const folder;
  std::vector<std::string> labels;
  std::string rows = "text,label,other\n";
  for (int i = 0; i < 60; ++i) {
    labels.push_back(std::vector<std::string>{"a", "b", "c"}[static_cast<std::size_t>(i * i / 7 % 3)]);
    rows += "word" + std::to_string(i % 13) + " and word" + std::to_string(i % 11) + "," + labels.back() + "," +
            std::vector<std::string>{"x", "y", "z"}[static_cast<std::size_t>(i % 3)] + "\n";
  }
  auto const data = save(folder, "data.csv", rows), saved = folder / "run/checkpoints/best.safetensors";
  auto const outcome = run_tiny({"--data", data, "--max-steps", "1", "--best-by", "loss", "--seed", "9", "--save-dir",
                                 folder / "run", "--predictions", folder / "run/table.csv"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  auto const table = read_file(folder / "run/table.csv");
  std::istringstream lines(table);
  std::string line;
  REQUIRE(std::getline(lines, line));
  int count = 0, last = -1;
  for (; std::getline(lines, line); ++count) {
    int const row = std::stoi(line);
    CHECK(row > last);
    CHECK(line.starts_with(std::to_string(row) + "," + labels[static_cast<std::size_t>(row)] + ","));
    last = row;
  }
  CHECK(count == 6);
  CHECK(last > 5);

  auto const again = run_example("text_classification", {"--evaluate", "--init-from", saved, "--data", data,
                                                         "--predictions", folder / "again.csv"});
  CAPTURE(again.err);
  CHECK(again.exit_code == 0);
  CHECK(read_file(folder / "again.csv") == table);
  auto const unknown = run_example("text_classification", {"--evaluate", "--init-from", saved, "--data",
                                                           save(folder, "new.csv", table_of(tickets(0, 90), ","))});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "or name other texts with --eval-data, and leave --data out"));
  auto const other = run_example("text_classification",
                                 {"--evaluate", "--init-from", saved, "--data", data, "--label-column", "other"});
  CHECK(other.exit_code == 2);
  CHECK(contains(other.err, "has other classes than the training data; give the --data and the --label-column"));
}

TEST_CASE("--evaluate needs neither the training data nor the flags of the run that saved the parameters") {
  TemporaryFolder const folder;
  auto const train = save(folder, "train.csv", table_of(tickets(0, 90), ",")),
             fresh = save(folder, "fresh.csv", table_of(tickets(2, 25), ","));
  auto const outcome = run_tiny({"--data", train, "--eval-data", fresh, "--epochs", "10", "--max-length", "6",
                                 "--save-dir", folder / "run", "--predictions", folder / "expected.csv"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  auto const line = outcome.out.substr(outcome.out.rfind("evaluation loss "));
  std::string saved;
  for (auto const& file : fs::directory_iterator(folder / "run/checkpoints")) saved = file.path().string();
  fs::remove(train);
  for (std::vector<std::string> more : {std::vector<std::string>{}, {"--nproc", "2"}, {"--parallel", "dp"}}) {
    more.insert(more.end(),
                {"--evaluate", "--init-from", saved, "--eval-data", fresh, "--predictions", folder / "found.csv"});
    auto const again = run_example("text_classification", more);
    CAPTURE(again.err);
    REQUIRE(again.exit_code == 0);
    CHECK(contains(again.out, line.substr(0, line.find('\n'))));
    CHECK(contains(again.out,
                   "note: as saved with the parameters: --d-model=8 --num-layers=1 --num-heads=1 "
                   "--feed-forward=8 --max-length=6\n"));
    CHECK(read_file(folder / "found.csv") == read_file(folder / "expected.csv"));
  }
  auto const other = run_example("text_classification",
                                 {"--evaluate", "--init-from", saved, "--eval-data", fresh, "--feed-forward", "16"});
  CHECK(other.exit_code == 2);  // a flag that is given applies
  CHECK(contains(other.err, "has shape"));

  // Texts without labels are classified, and nothing is said of a loss.
  std::string unlabelled = "text\n";
  for (auto const& [text, label] : tickets(2, 25)) unlabelled += '"' + text + "\"\n";
  std::vector<std::string> flags{"--evaluate", "--init-from", saved, "--eval-data",
                                 save(folder, "new.csv", unlabelled)};
  auto const refused = run_example("text_classification", flags);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "has no column \"label\" to compare predictions with"));
  flags.insert(flags.end(), {"--predictions", folder / "new_table.csv"});
  auto const classified = run_example("text_classification", flags);
  CAPTURE(classified.err);
  CHECK(classified.exit_code == 0);
  CHECK_FALSE(contains(classified.out, "loss"));
  auto expected = read_file(folder / "expected.csv");
  for (std::string const label : {"network", "billing", "hardware"})
    for (std::size_t at = 0; (at = expected.find(',' + label + ',', at)) != std::string::npos; ++at)
      expected.erase(at + 1, label.size());
  CHECK(read_file(folder / "new_table.csv") == expected);
}

TEST_CASE("texts are prepared once for all ranks, into --cache, and give the parameters of a run without cache") {
  TemporaryFolder const folder;
  save(folder, "train.csv", news(0, 100));
  save(folder, "test.csv", news(3, 30));
  auto const files = [&] {
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folder / "cache")) names.push_back(entry.path().string());
    return names;
  };
  auto const memory = trained(folder, "memory", {"--cache", "none"});
  auto const first = trained(folder, "first", {"--nproc", "2", "--cache", folder / "cache"});
  REQUIRE(files().size() == 1);
  CHECK(files()[0].ends_with(".tokens"));
  auto const second = trained(folder, "second", {"--nproc", "2", "--cache", folder / "cache"});
  auto const threads = trained(folder, "threads", {"--parallel", "ddp", "--devices", "2", "--cache", folder / "cache"});
  CHECK(files().size() == 1);
  CHECK(sha(first) == sha(trained(folder, "plain", {"--nproc", "2"})));
  CHECK(sha(first) == sha(second));
  CHECK(sha(first) == sha(threads));
  CHECK(sha(memory) == sha(trained(folder, "alone", {"--cache", folder / "cache"})));
  write_file(files()[0], read_file(files()[0]).substr(0, 5000));  // it is prepared again
  CHECK(sha(trained(folder, "mended", {"--nproc", "2", "--cache", folder / "cache"})) == sha(first));
  auto const old = files()[0];
  save(folder, "train.csv", news(1, 100));
  CHECK(sha(trained(folder, "other", {"--nproc", "2", "--cache", folder / "cache"})) != sha(first));
  CHECK(files().size() == 1);
  CHECK(files()[0] != old);
}

TEST_CASE("texts longer than the model's limit are counted and reported once, and other texts are not mentioned") {
  TemporaryFolder const folder;
  auto const out = [&](std::string const& length) {
    auto const outcome =
        run_example("text_classification", {"--data", save(folder, "data.csv", news(0, 40)), "--d-model", "16",
                                            "--nproc", "2", "--max-steps", "1", "--max-length", length});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  auto const output = out("7");
  auto const note = output.find("note: 8 of 40 texts have more than 7 words");
  CHECK(note != std::string::npos);
  CHECK(output.find("texts have more than", note + 30) == std::string::npos);
  CHECK_FALSE(contains(out("8"), "texts have more than"));
}

TEST_CASE("empty texts and parts of one class are noted, and other data is not mentioned") {
  TemporaryFolder const folder;
  auto const out = [&](std::string const& training, std::string const& evaluation) {
    auto const outcome = run_example("text_classification",
                                     {"--data", save(folder, "data.csv", training), "--eval-data",
                                      save(folder, "eval.csv", evaluation), "--d-model", "16", "--max-steps", "1"});
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  std::string const one = "\"2\",\"title\",\"words of sports\"\n", other = "\"1\",\"title\",\"words\"\n",
                    empty = "\"1\",\"\",\"\"\n";
  auto const whole = out(one + other, one + other);
  CHECK_FALSE(contains(whole, "note: each of"));
  CHECK_FALSE(contains(whole, "no words"));
  auto const noted = out(one + one + one, one + one);
  CHECK(contains(noted, "note: each of the 3 training texts has the class \"Sports\", so that a model learns"));
  CHECK(contains(noted, "note: each of the 2 evaluation texts has the class \"Sports\", so that the accuracy"));
  CHECK(contains(out(one + empty + empty, one + other), "note: 2 of 5 texts are empty or have no words"));
  auto const blanks = out("text,label\na,x\nb,y\nc,x \n", "text,label\na,x\nb,y\n");
  CHECK(contains(blanks, "note: the classes \"x\" and \"x \" differ in blanks only; check the labels\n"));
  CHECK_FALSE(contains(whole, "differ in blanks"));
}

TEST_CASE("the study's configuration files equal their flags") {
  TemporaryFolder const folder;
  std::string const data = save(folder, "data.csv", news(0, 200));
  struct Study {
    char const* file;
    std::vector<std::string> flags;
  };
  for (auto const& study :
       {Study{"ag_news.yaml",
              {"--d-model", "128", "--num-heads", "4", "--num-layers", "2", "--feed-forward", "256", "--max-length",
               "128", "--batch-size", "32", "--epochs", "3", "--lr", "0.001"}},
        Study{"imdb.yaml",
              {"--d-model", "256", "--num-heads", "8", "--num-layers", "4", "--feed-forward", "1024", "--max-length",
               "256", "--batch-size", "128", "--epochs", "10", "--lr", "0.0005"}}}) {
    std::string const file = study.file;
    CAPTURE(file);
    std::vector<std::string> const common{"--data", data, "--dry-run"};
    auto configured = common, plain = common;
    configured.insert(configured.end(), {"--config", LOCKSTEP_SOURCE_DIR "/examples/configs/" + file});
    plain.insert(plain.end(), study.flags.begin(), study.flags.end());
    plain.insert(plain.end(), {"--num-workers", "2", "--vocabulary", "20000", "--dropout", "0.1"});
    auto const a = run_example("text_classification", configured), b = run_example("text_classification", plain);
    CAPTURE(a.err);
    REQUIRE(a.exit_code == 0);
    REQUIRE(b.exit_code == 0);
    auto const line = [](std::string const& out, std::string const& with) {
      std::istringstream lines(out);
      for (std::string each; std::getline(lines, each);)
        if (contains(each, with)) return each;
      return std::string();
    };
    CHECK(contains(line(a.out, " parameters"), "text_classification: single, "));
    CHECK(line(a.out, " parameters") == line(b.out, " parameters"));
    CHECK_FALSE(line(a.out, "dry run: ").empty());
    CHECK(line(a.out, "dry run: ") == line(b.out, "dry run: "));
  }
}

TEST_CASE("without --data, texts of this machine are classified") {
  auto const outcome = run_example("text_classification", {"--d-model", "16", "--max-steps", "2", "--parallel", "dp"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "2 devices"));
}

TEST_CASE("--evaluate reproduces the run's last evaluation under every policy, and trains nothing") {
  TemporaryFolder const folder;
  std::vector<std::string> const flags{
      "--data", save(folder, "data.csv", news(0, 100)), "--d-model", "16", "--threads", "1", "--batch-size", "8"};
  auto const run = [&](std::vector<std::string> const& more) {
    auto all = flags;
    all.insert(all.end(), more.begin(), more.end());
    auto const outcome = run_example("text_classification", all);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    auto const at = outcome.out.rfind("evaluation loss ");
    REQUIRE(at != std::string::npos);
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  auto const found = run({"--max-steps", "20", "--epochs", "2", "--save-dir", folder / "run"});
  auto const saved = folder / "run/checkpoints/step_20.safetensors";
  CHECK(run({"--evaluate", "--init-from", saved, "--predictions", folder / "table.csv"}) == found);
  CHECK(std::ranges::count(read_file(folder / "table.csv"), '\n') > 1);
  CHECK(run({"--evaluate", "--init-from", saved, "--parallel", "dp", "--devices", "2"}) == found);
  CHECK(run({"--evaluate", "--init-from", saved, "--nproc", "2"}) == found);
  CHECK(folder.entries() == 3);  // data, run and table

  auto other = news(0, 100);
  std::ranges::replace(other, 'e', 'x');
  for (auto const* ranks : {"1", "2"}) {
    auto const refused = run_example("text_classification", {"--data", save(folder, "other.csv", other), "--d-model",
                                                             "16", "--init-from", saved, "--nproc", ranks});
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "has another vocabulary than the one of the training data"));
    CHECK(refused.out.empty());
  }
}

TEST_CASE("--doctor measures under every policy, trains nothing, and writes only its results") {
  TemporaryFolder const folder;
  std::vector<std::string> flags{
      "--data",  save(folder, "data.csv", news(0, 100)), "--d-model", "16", "--threads", "1", "--batch-size", "8",
      "--doctor"};
  auto const examined = [&](std::vector<std::string> const& more) {
    auto all = flags;
    all.insert(all.end(), more.begin(), more.end());
    auto const outcome = run_example("text_classification", all);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(contains(outcome.out, "the loader alone"));
    CHECK(contains(outcome.out, "the run is bound by "));
    CHECK(contains(outcome.out, "predicted, none of it measured"));
    return outcome.out;
  };
  auto const alone = examined({"--save-dir", folder / "alone"});
  CHECK_FALSE(contains(alone, "an all-reduce alone"));
  CHECK(std::distance(fs::directory_iterator(folder / "alone"), {}) == 1);
  auto const found = json::parse(read_file(folder / "alone/doctor.json"));
  CHECK(found.at("loader_samples_per_second").number() > 0);
  CHECK(found.at("run").at("steps").integer() >= 4);
  bool table = false;
  for (auto const& bucket : found.at("run").at("buckets").array()) {
    CHECK(bucket.at("ready_ms").number() > 0);
    CHECK_FALSE(bucket.find("start_ms"));
    table = table || bucket.find("table_bytes");
  }
  CHECK(table);
  examined({"--parallel", "dp", "--devices", "2"});
  CHECK(contains(examined({"--nproc", "2"}), "an all-reduce alone"));
  CHECK(contains(examined({"--parallel", "ddp", "--devices", "2", "--num-workers", "0"}), "--num-workers 0"));
}

TEST_CASE("text: every command in docs/explanation/stories/text-classification.md runs") {
  TemporaryFolder const folder;
  std::string reviews = "review,sentiment\n";
  for (int i = 0; i < 300; ++i) reviews += i % 2 == 0 ? "a fine film,positive\n" : "a bad film,negative\n";
  std::string messages = "department\tmessage\n";
  for (auto const& [text, label] : tickets(0, 90)) messages += label + '\t' + text + '\n';
  std::string const configs = LOCKSTEP_SOURCE_DIR "/examples/configs/";
  auto const complete = [](std::vector<std::string>& flags, std::string const&) {
    flags.insert(flags.end(), {"--max-steps", "1", "--threads", "1", "--d-model", "16", "--num-heads", "2",
                               "--num-layers", "1", "--feed-forward", "16"});
  };
  check_story_commands("text-classification", "text_classification",
                       {{"examples/configs/ag_news.yaml", configs + "ag_news.yaml"},
                        {"examples/configs/imdb.yaml", configs + "imdb.yaml"},
                        {"ag_news/train.csv", save(folder, "news.csv", news(0, 300))},
                        {"imdb/train.csv", save(folder, "reviews.csv", reviews)},
                        {"tickets.tsv", save(folder, "tickets.tsv", messages)},
                        {"tickets.jsonl", save(folder, "tickets.jsonl", json_lines_of(tickets(0, 90)))},
                        {"wrong.csv", save(folder, "wrong.csv", news(0, 9) + "\"9\",\"a\",\"b\"\n")},
                        {"table.csv", folder / "table.csv"}},
                       complete, 9);
  CHECK(std::ranges::count(read_file(folder / "table.csv"), '\n') == 31);
}
