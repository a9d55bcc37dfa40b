// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/json.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/write_npy.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include "../examples/pose_to_text/model.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "examples/story_commands.hpp"

using namespace lockstep;
using namespace lockstep_test;
using pose_to_text::Clip;
using pose_to_text::PoseToText;

namespace {

constexpr Index coordinates = 4 * pose_to_text::channels;

pose_to_text::Sizes sizes(double dropout) {
  return {.coordinates = coordinates,
          .vocabulary = 7,
          .width = 8,
          .layers = 2,
          .heads = 2,
          .feed_forward = 12,
          .dropout = dropout};
}

/// Each word is shown for some frames: a word moves its own joints. Token 1 begins a text, token 2 ends it.
std::vector<Clip> clips(int count) {
  std::vector<Clip> all;
  for (int i = 0; i < count; ++i) {
    Clip clip{{}, {}, {1}, {}};
    for (int w = 0; w <= i % 4; ++w) {
      auto const word = static_cast<std::int32_t>(3 + (i + w * (1 + i / 4)) % 4);
      for (int f = 0; f < 2 + (i + w) % 2; ++f) {
        clip.frames.push_back(1);
        for (Index c = 0; c < coordinates; ++c) {
          double const phase = static_cast<double>(c * word);
          clip.numbers.push_back(static_cast<float>(std::sin(phase) + 0.1 * static_cast<double>(f)));
        }
      }
      clip.tokens.push_back(word);
      clip.next.push_back(word);
    }
    clip.next.push_back(2);
    all.push_back(std::move(clip));
  }
  return all;
}

template <class Collate>
auto loader(int count, Collate collate) {
  return lockstep_test::in_order(clips(count), count, collate);
}

}  // namespace

TEST_CASE("parameters have names, and a bias that both sides share is learned once") {
  PoseToText model(sizes(0));
  auto const layout = nn::ParameterLayout::of(model);
  std::string names;
  for (auto const& entry : layout.entries()) names += entry.name + " ";
  for (auto const* name :
       {"frames.weight", "encoder.bias.table", "encoder.1.attention.query.weight", "encoder.0.feed_forward.gate.weight",
        "decoder.1.memory.value.weight", "decoder.0.memory.norm.weight", "decoder.norm.weight", "head.weight"})
    CHECK_MESSAGE(names.find(std::string(name) + " ") != std::string::npos, name);
  CHECK(names.find("encoder.0.memory") == std::string::npos);
  CHECK(names.find("query.bias") == std::string::npos);
}

TEST_CASE("gradients are exact, padded and ragged, with dropout") {
  for (double dropout : {0.0, 0.2}) {
    PoseToText model(sizes(dropout));
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<double> values(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 3, values.data());
    auto const check = [&](auto batches) {
      batches.start({0, 1, 1}, 0, 0, 1);
      auto const held = batches.next();
      auto const result = nn::check_gradients(model, layout, values, held.batches()[0], {.max_per_parameter = 6});
      CAPTURE(result.where);
      CHECK(result.ok());
    };
    check(loader(5, data::PadCollate{}));
    check(loader(5, data::RaggedCollate{}));
  }
}

TEST_CASE("padded and ragged batches give equal losses") {
  PoseToText model(sizes(0.2));
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size())), gradients(values.size());
  nn::initialize(layout, 3, values.data());
  auto const loss = [&](auto batches) {
    ThreadPool pool(1);
    nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
    context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 5);
    batches.start({0, 1, 1}, 0, 0, 1);
    auto const held = batches.next();
    return nn::loss_of(model, context, held.batches()[0]);
  };
  auto const padded = loss(loader(6, data::PadCollate{})), ragged = loss(loader(6, data::RaggedCollate{}));
  CHECK(padded.weight == 6 + 1 + 2 + 3 + 4 + 1 + 2);  // every text's words and its end
  CHECK(ragged.weight == padded.weight);
  CHECK(ragged.sum == padded.sum);
}

TEST_CASE("token-by-token output equals the output for the whole text, and frames are encoded once") {
  PoseToText model(sizes(0));
  std::vector<float> values(static_cast<std::size_t>(nn::ParameterLayout::of(model).size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.3f * std::sin(static_cast<float>(i * i % 1009));
  train::Predictor<PoseToText> predictor(model, std::span<float const>(values)),
      whole(model, std::span<float const>(values));
  auto const batch = [](std::vector<Clip> all) { return data::Collated{data::RaggedCollate{}, std::move(all)}; };
  auto const seen = clips(7);
  std::vector<Clip> texts(2);
  for (std::size_t i = 0; i < 2; ++i) texts[i] = {seen[i + 5].numbers, seen[i + 5].frames, {1}, {2}};
  auto here = texts;
  for (Index length = 1; length <= 5; ++length) {
    auto const next = batch(here);
    auto const got = (length == 1 ? predictor.begin(next.batch()) : predictor.next(next.batch())).tokens.value;
    auto const all = batch(texts);
    auto const expected = whole.predict(all.batch()).tokens.value;
    for (Index row = 0; row < 2; ++row) {
      auto const* const logits = expected.data + (row * length + length - 1) * 7;
      CHECK(std::equal(logits, logits + 7, got.data + row * 7));
      auto const word = static_cast<std::int32_t>(std::max_element(logits, logits + 7) - logits);
      auto& text = texts[static_cast<std::size_t>(row)];
      text.tokens.push_back(word), text.next.push_back(2);
      here[static_cast<std::size_t>(row)] = Clip{{}, {}, {word}, {2}};
    }
  }
}

TEST_CASE("a few clips are overfitted on one device, two devices and two ranks, with bit-identical results") {
  // 1.9 = ln 7 is the loss of guessing; at 0.1 the right token has 90 % on average.
  lockstep_test::check_learned_by_heart(PoseToText{sizes(0)}, clips(8), data::PadCollate{}, 100);
}

// ---- the program

namespace {

using Flags = std::vector<std::string>;

/// A small model that trains quickly, unless `more` says otherwise.
Flags small(Flags more) {
  for (auto const& [flag, value] : std::vector<std::pair<std::string, std::string>>{{"--d-model", "8"},
                                                                                    {"--num-heads", "2"},
                                                                                    {"--feed-forward", "16"},
                                                                                    {"--num-layers", "1"},
                                                                                    {"--epochs", "1"},
                                                                                    {"--batch-size", "4"},
                                                                                    {"--threads", "1"},
                                                                                    {"--beam", "2"}})
    if (std::find(more.begin(), more.end(), flag) == more.end()) more.insert(more.end(), {flag, value});
  return more;
}
Outcome run(Flags const& more) { return run_example("pose_to_text", small(more)); }

json::Value run_json(std::string const& folder) { return json::parse(read_file(folder + "/run.json"), folder); }
std::string sha(std::string const& folder) { return run_json(folder).at("parameters_sha256").string(); }

/// Files of a data set of 24 training and 6 dev samples, in a user's layout.
class Data {
 public:
  Data() {
    for (int i = 0; i < 30; ++i) {
      write_pose(i, 3 + i % 5, 5);
      rows.push_back({file(i), text(i), i < 24 ? "train" : "dev"});
    }
  }
  [[nodiscard]] static std::string file(int i) { return "pose" + std::to_string(i) + ".npy"; }
  [[nodiscard]] static std::string text(int i) {
    return std::string(i % 2 == 0 ? "tomorrow" : "today") + (i % 3 == 0 ? " rain" : " sun") + " in the " +
           (i % 5 < 2 ? "north" : "south");
  }
  /// Replaces a sample's file by one with this many frames and joints.
  template <class T = float>
  void write_pose(int i, Index frames, Index joints, T first = T(0.5)) const {
    std::vector<T> numbers(static_cast<std::size_t>(frames * joints * 3));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = static_cast<T>(std::sin(static_cast<double>(k) * 0.37 + i));
    if (!numbers.empty()) numbers.back() = first;
    std::filesystem::remove(folder_ / file(i));
    data::write_npy<T>(folder_ / file(i), numbers, {frames, joints, 3});
  }
  /// Writes the index and returns the folder.
  [[nodiscard]] std::string path(std::string const& name = "index.tsv", bool split = true) const {
    char const separator = name.ends_with(".csv") ? ',' : '\t';
    std::string index = std::string("text") + separator + "file" + (split ? std::string(1, separator) + "split" : "");
    for (auto const& row : rows) index += "\n" + row[1] + separator + row[0] + (split ? separator + row[2] : "");
    for (auto const* other : {"index.tsv", "index.csv"}) std::filesystem::remove(folder_ / other);
    write_file(folder_ / name, index + "\n");
    return folder_.path().string();
  }
  [[nodiscard]] std::string operator/(std::string const& name) const { return folder_ / name; }

  std::vector<std::vector<std::string>> rows;  // file, text, split

 private:
  TemporaryFolder folder_;
};

struct Decoded {
  std::string file, reference, hypothesis;
};
std::vector<Decoded> decoded(std::string const& path) {
  data::CsvDataset<Decoded> const rows(path, {.header = data::CsvHeader::first_line});
  std::vector<Decoded> all;
  for (Index i = 0; i < rows.size(); ++i) all.push_back(rows.get(i));
  return all;
}

}  // namespace

TEST_CASE("the program writes synthetic data, reads it back, and trains with equal bits by dp, ddp and from --data") {
  TemporaryFolder const folder;
  auto const train = [&](std::string const& name, Flags flags) {
    flags.insert(flags.end(), {"--save-dir", folder / name, "--samples", "30", "--max-length", "3"});
    auto const outcome = run(flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "data: 30 samples for training, 3 for evaluation, poses of 27 joints"));
    CHECK(contains(outcome.out, "padding: "));
    CHECK(contains(outcome.out, "BLEU "));
    CHECK(contains(outcome.out, "chrF2 "));
    CHECK(std::isfinite(run_json(folder / name).at("final").at("eval_loss").number()));
    return outcome.out;
  };
  auto const single = train("single", {"--batch-size", "8"});
  CHECK(contains(single,
                 "wrote synthetic data (30 + 3 sentences of up to 3 signs, seed 1) to " + (folder / "single/data")));
  CHECK(contains(single, "epoch: 4 micro-steps, 4 optimizer steps, effective batch 8"));
  CHECK(std::filesystem::exists(folder / "single/data/index.tsv"));
  CHECK(run_json(folder / "single").at("steps").number() == 4);

  auto const again = train("again", {"--batch-size", "8", "--data", folder / "single/data"});
  CHECK_FALSE(contains(again, "synthetic"));
  CHECK(sha(folder / "again") == sha(folder / "single"));

  Flags const data{"--data", folder / "single/data", "--grad-accum-steps", "2"};
  auto const with = [&](Flags more) {
    more.insert(more.end(), data.begin(), data.end());
    return more;
  };
  auto const dp = train("dp", with({"--parallel", "dp", "--devices", "2"}));
  CHECK(contains(dp, "epoch: 4 micro-steps, 2 optimizer steps, effective batch 16"));
  train("processes", with({"--nproc", "2"}));
  train("threads", with({"--parallel", "ddp", "--devices", "2"}));
  CHECK(sha(folder / "dp").size() == 64);
  CHECK(sha(folder / "processes") == sha(folder / "dp"));
  CHECK(sha(folder / "threads") == sha(folder / "dp"));
}

TEST_CASE("a user's folder: TSV or CSV, every type of numbers, its own splits, and files locked by others") {
  Data data;
  data.write_pose<double>(3, 4, 5);
  TemporaryFolder const folder;
  auto const predictions = [&](Flags flags) {
    flags.insert(flags.end(), {"--predictions", folder / "texts.csv"});
    auto const outcome = run(flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return decoded(folder / "texts.csv");
  };
  auto const tsv = predictions({"--data", data.path()});
  REQUIRE(tsv.size() == 6);  // the dev samples, once each
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(tsv[i].file == data.rows[24 + i][0]);
    CHECK(tsv[i].reference == data.rows[24 + i][1]);
  }
  auto const same = [&](std::vector<Decoded> const& other) {
    return std::equal(tsv.begin(), tsv.end(), other.begin(), other.end(), [](auto const& a, auto const& b) {
      return a.file == b.file && a.reference == b.reference && a.hypothesis == b.hypothesis;
    });
  };
  CHECK(same(predictions({"--data", data.path("index.csv")})));
  CHECK(same(predictions({"--data", data / "index.csv"})));

  // Another program's exclusive locks on every file stop none of three processes.
  std::vector<int> locks;
  for (int i = 0; i < 30; ++i) {
    locks.push_back(::open((data / Data::file(i)).c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(locks.back(), LOCK_EX | LOCK_NB) == 0);
  }
  CHECK(predictions({"--data", data.path(), "--nproc", "3", "--num-workers", "2"}).size() == 6);
  for (int const lock : locks) ::close(lock);

  data.rows[7][2] = "test";
  auto const test = predictions({"--data", data.path(), "--eval-split", "test"});
  REQUIRE(test.size() == 1);
  CHECK(test[0].file == Data::file(7));
  for (auto& row : data.rows) row[2] = row[2] == "dev" ? "val" : "";
  CHECK(predictions({"--data", data.path()}).size() == 6);
  CHECK(predictions({"--data", data.path("index.tsv", false)}).size() == 3);  // a tenth of 30
  Data other;
  other.rows.resize(4);
  for (auto& row : other.rows) row[2] = "test";
  CHECK(predictions({"--data", data.path(), "--eval-data", other.path()}).size() == 4);
}

TEST_CASE("a run resumed in the middle of an epoch ends with equal bits, and can be evaluated alone") {
  Data const data;
  TemporaryFolder const folder;
  auto const flags = [&](std::string const& name, Flags more) {
    more.insert(more.end(), {"--data", data.path(), "--epochs", "2", "--save-dir", folder / name});
    return more;
  };
  REQUIRE(run(flags("whole", {})).exit_code == 0);
  REQUIRE(run(flags("parts", {"--checkpoint-every", "4"})).exit_code == 0);
  for (auto const* step : {"8", "12"})  // as if it had been killed in the first epoch, whose last step is 6
    for (auto const* kind : {".safetensors", ".state.safetensors"})
      std::filesystem::remove(folder / ("parts/checkpoints/step_" + std::string(step) + kind));
  std::filesystem::remove(folder / "parts/run.json");
  auto const resumed = run(flags("parts", {"--resume", "auto"}));
  CAPTURE(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(run_json(folder / "parts").at("resumed_at").array().size() == 1);
  CHECK(sha(folder / "parts") == sha(folder / "whole"));
  auto const final = run_json(folder / "whole").at("final");
  CHECK(final == run_json(folder / "parts").at("final"));
  char scores[64];
  std::snprintf(scores, sizeof scores, "BLEU %.2f (", final.at("bleu").number());
  CHECK(contains(resumed.out, scores));
  std::snprintf(scores, sizeof scores, "chrF2 %.2f (", final.at("chrf").number());
  CHECK(contains(resumed.out, scores));

  auto const file = folder / "whole/checkpoints/step_12.safetensors";
  auto const evaluated = run({"--data", data.path(), "--evaluate", "--init-from", file});
  CAPTURE(evaluated.err);
  CHECK(evaluated.exit_code == 0);
  CHECK(contains(evaluated.out, "over 6 samples"));
  CHECK(contains(evaluated.out, "decoded 6 texts with a beam of 2: BLEU "));
  auto const greedy = run({"--data", data.path(), "--evaluate", "--init-from", file, "--beam", "0"});
  CHECK(greedy.exit_code == 0);
  CHECK_FALSE(contains(greedy.out, "BLEU"));
}

TEST_CASE("one bad sample among many: fail, skip and substitute") {
  struct Case {
    std::string message;
    void (*damage)(Data&);
    bool in_header = true;
  };
  for (auto const& each : std::vector<Case>{
           {"pose9.npy: cannot be opened", [](Data& d) { std::filesystem::remove(d / "pose9.npy"); }},
           {"pose9.npy: ", [](Data& d) { write_file(d / "pose9.npy", "no array"); }},
           {"pose9.npy: ", [](Data& d) { std::filesystem::resize_file(d / "pose9.npy", 200); }},
           {"pose9.npy: has 4 joints, and the folder's first pose has 5", [](Data& d) { d.write_pose(9, 4, 4); }},
           {"pose9.npy: has the shape [0, 5, 3], and holds no pose", [](Data& d) { d.write_pose(9, 0, 5); }},
           {"pose9.npy: holds int32", [](Data& d) { d.write_pose<std::int32_t>(9, 4, 5, 1); }},
           {"pose9.npy: frame 3, joint 4 is not finite",
            [](Data& d) { d.write_pose(9, 4, 5, std::numeric_limits<float>::quiet_NaN()); }, false}}) {
    CAPTURE(each.message);
    Data data;
    each.damage(data);
    auto const path = data.path();
    auto const fails = run({"--data", path});
    CAPTURE(fails.err);
    CHECK(fails.exit_code == 2);
    CHECK(contains(fails.err, each.message));
    CHECK(fails.lines_of_err() <= 4);
    CHECK_FALSE(contains(fails.out, "samples for training"));  // refused before a rank starts
    for (auto const* policy : {"skip", "substitute"}) {
      auto const outcome = run({"--data", path, "--on-failure", policy});
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK(contains(outcome.out, "note: 1 files cannot be used") == each.in_header);
      CHECK(contains(outcome.out,
                     std::string("note: 1 sample was ") + (std::string(policy) == "skip" ? "skipped" : "replaced")));
      CHECK(contains(outcome.out, "pose9.npy"));
    }
  }
}

TEST_CASE("long texts are truncated, and their number is reported") {
  Data const data;
  auto const outcome = run({"--data", data.path(), "--max-length", "2"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "note: 24 training texts have more than --max-length 2 pieces and are cut"));
}

TEST_CASE("a tokenizer is saved with the parameters, and another one is refused") {
  Data data;
  TemporaryFolder const folder;
  REQUIRE(run({"--data", data.path(), "--save-dir", folder / "a", "--vocabulary", "40"}).exit_code == 0);
  auto const saved = folder / "a/checkpoints/step_6.safetensors";
  for (auto& row : data.rows) row[1] += " with snow and wind";
  auto const cache = folder / "cache";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  auto const other = run({"--data", data.path(), "--vocabulary", "60"});  // leaves its model in the cache folder
  ::unsetenv("XDG_CACHE_HOME");
  REQUIRE(other.exit_code == 0);
  std::string model;
  for (auto const& entry : std::filesystem::directory_iterator(cache + "/lockstep"))
    if (entry.path().extension() == ".model") model = entry.path().string();
  REQUIRE_FALSE(model.empty());
  auto const refused = run({"--data", data.path(), "--tokenizer", model, "--init-from", saved});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--tokenizer " + model + ": has another vocabulary ("));
  auto const fits = run({"--data", data.path(), "--init-from", saved});  // with the saved one
  CAPTURE(fits.err);
  CHECK(fits.exit_code == 0);
  auto const given = run({"--data", data.path(), "--tokenizer", model});
  CAPTURE(given.err);
  CHECK(given.exit_code == 0);
}

TEST_CASE("the program refuses impossible requests before any rank starts") {
  Data data;
  TemporaryFolder const folder;
  auto const path = data.path();
  auto const empty = folder / "empty", without = folder / "without";
  std::filesystem::create_directory(empty);
  std::filesystem::create_directory(without);
  write_file(folder / "without/index.tsv", "file\ttext\tsplit\n");
  auto const check = [&](Flags const& flags, std::string const& message) {
    auto const outcome = run(flags);
    CAPTURE(message);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, message));
    CHECK(outcome.lines_of_err() <= 4);
    CHECK_FALSE(contains(outcome.out, "samples for training"));
  };
  check({"--data", folder / "missing"}, "--data " + (folder / "missing") + ": does not exist");
  check({"--data", empty}, "--data " + empty + ": holds neither index.tsv nor index.csv");
  check({"--data", without}, "index.tsv: holds a header and no rows");
  check({"--data", path, "--eval-data", folder / "missing"}, "missing: does not exist");
  check({"--data", path, "--tokenizer", data / "index.tsv"}, "index.tsv: is no sentencepiece model");
  check({"--data", path, "--vocabulary", "10"}, "no vocabulary of at most 10 pieces");
  check({"--data", path, "--predictions", folder / "none/a.csv"}, "none/a.csv: cannot create the file");
  check({"--data", path, "--predictions", folder / "a.csv", "--beam", "1", "--eval-split", "train"}, "--eval-split");
  for (auto const& input : {data / "index.tsv", data / Data::file(3)})
    check({"--data", path, "--predictions", input}, input + ": is a file that the run reads, and would be replaced");
  check({"--data", path, "--encoding", "klingon"}, "encoding \"klingon\": iconv of this system cannot convert it");
  check({"--data", path, "--num-heads", "3"}, "--num-heads");
  check({"--vocabulary", "3"}, "--vocabulary 3");
  check({"--samples", "1", "--nproc", "2"}, "2 ranks for 1 training samples");
  write_file(folder / "without/index.tsv", "path\ttext\nx\ty\n");
  check({"--data", without}, "file");
  data.rows[5][2] = "trial";
  check({"--data", data.path()}, "index.tsv:7: split \"trial\": must be train, dev (or val) or test");
  for (auto& row : data.rows) row[2] = "dev";
  check({"--data", data.path()}, "has no training samples");
}

TEST_CASE("pose: every command in docs/explanation/stories/pose-to-text.md runs") {
  Data data;
  TemporaryFolder const folder;
  auto const path = data.path();
  // The models of --tokenizer: two runs write them to the cache folder.
  Data other;
  for (auto& row : other.rows) row[1] += " with snow and wind";
  auto const model = [&](std::string const& name, std::string const& texts) {
    auto const cache = folder / name;
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    CHECK(run({"--data", texts, "--dry-run"}).exit_code == 0);
    ::unsetenv("XDG_CACHE_HOME");
    for (auto const& entry : std::filesystem::directory_iterator(cache + "/lockstep"))
      if (entry.path().extension() == ".model") return entry.path().string();
    return std::string();
  };
  std::map<std::string, std::string> const meanings{
      {"poses", path},
      {"runs/signs", folder / "run"},
      {"runs/signs/checkpoints/step_1000.safetensors", folder / "run/checkpoints/step_1.safetensors"},
      {"test.csv", folder / "test.csv"},
      {"spm.model", model("a", path)},
      {"other.model", model("b", other.path())}};
  auto const complete = [](Flags& flags, std::string const& command) {
    flags = small(flags);
    if (!contains(command, "--evaluate")) flags.insert(flags.end(), {"--max-steps", "1"});
  };
  check_story_commands("pose-to-text", "pose_to_text", meanings, complete, 13);
  CHECK(decoded(folder / "test.csv").size() == 6);
}
