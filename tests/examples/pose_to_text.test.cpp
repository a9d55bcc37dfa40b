// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/collated.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/train/predictor.hpp>

#include "../examples/pose_to_text/model.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"

using namespace lockstep;
using pose_to_text::Clip;
using pose_to_text::PoseToText;

namespace {

pose_to_text::Sizes sizes(double dropout) {
  return {.vocabulary = 7, .width = 8, .layers = 2, .heads = 2, .feed_forward = 12, .dropout = dropout};
}

/// Each word is shown for some frames: a word moves key points of its own. Token 1 begins a text, token 2 ends it.
std::vector<Clip> clips(int count) {
  std::vector<Clip> all;
  for (int i = 0; i < count; ++i) {
    Clip clip{{}, {1}, {}};
    for (int w = 0; w <= i % 4; ++w) {
      auto const word = static_cast<std::int32_t>(3 + (i + w * (1 + i / 4)) % 4);
      for (int f = 0; f < 2 + (i + w) % 2; ++f) {
        clip.frames.emplace_back();
        for (std::size_t c = 0; c < pose_to_text::coordinates; ++c) {
          double const phase = static_cast<double>(c) * static_cast<double>(word) / 7;
          clip.frames.back()[c] = static_cast<float>(std::sin(phase) + 0.1 * static_cast<double>(f));
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

TEST_CASE("names of the parameters; what both sides of a bias share is learned once") {
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

TEST_CASE("gradients, padded and ragged, with dropout") {
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

TEST_CASE("padded and ragged batches give the same loss") {
  PoseToText model(sizes(0.2));
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size())), gradients(values.size());
  nn::initialize(layout, 3, values.data());
  auto const loss = [&](auto batches) {
    ThreadPool pool(1);
    nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
    context.bind(values.data(), gradients.data(), layout.entries().size());
    context.begin_step();
    context.begin_micro_batch(nn::Mode::training, 5);
    batches.start({0, 1, 1}, 0, 0, 1);
    auto const held = batches.next();
    return nn::loss_of(model, context, held.batches()[0]);
  };
  auto const padded = loss(loader(6, data::PadCollate{})), ragged = loss(loader(6, data::RaggedCollate{}));
  CHECK(padded.weight == 6 + 1 + 2 + 3 + 4 + 1 + 2);  // every text's words and its end
  CHECK(ragged.weight == padded.weight);
  CHECK(ragged.sum == padded.sum);
}

TEST_CASE("it writes token by token what it would write of the whole text, and reads the frames once") {
  PoseToText model(sizes(0));
  std::vector<float> values(static_cast<std::size_t>(nn::ParameterLayout::of(model).size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.3f * std::sin(static_cast<float>(i * i % 1009));
  train::Predictor<PoseToText> predictor(model, std::span<float const>(values)),
      whole(model, std::span<float const>(values));
  auto const batch = [](std::vector<Clip> all) { return data::Collated{data::RaggedCollate{}, std::move(all)}; };
  std::vector<Clip> texts(2);
  for (std::size_t i = 0; i < 2; ++i) texts[i] = {clips(7)[i + 5].frames, {1}, {2}};
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
      here[static_cast<std::size_t>(row)] = Clip{{}, {word}, {2}};
    }
  }
}

TEST_CASE("a few clips are learned by heart on one device, on two, and by two ranks, which agree bit for bit") {
  // 1.9 = ln 7 is the loss of guessing; at 0.1 the right token has 90 % on average.
  lockstep_test::check_learned_by_heart(PoseToText{sizes(0)}, clips(8), data::PadCollate{}, 100);
}

TEST_CASE("the program trains on one device and, with equal bits, on two devices and by two processes") {
  using namespace lockstep_test;
  TemporaryFolder const folder;
  auto const sha = [&](std::string const& name, std::vector<std::string> flags) {
    flags.insert(flags.end(),
                 {"--save-dir",  folder / name, "--samples",           "30", "--max-length", "3", "--d-model",    "8",
                  "--num-heads", "2",           "--feed-forward",      "16", "--num-layers", "1", "--vocabulary", "10",
                  "--epochs",    "1",           "--global-batch-size", "8",  "--threads",    "1"});
    auto const outcome = run_example("pose_to_text", flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    auto const run = json::parse(read_file((folder / name) + "/run.json"), name);
    CHECK(run.at("steps").number() == 4);
    CHECK(std::isfinite(run.at("final").at("eval_loss").number()));
    return run.at("parameters_sha256").string();
  };
  sha("single", {});
  auto const dp = sha("dp", {"--parallel", "dp", "--devices", "2"});
  CHECK(dp.size() == 64);
  CHECK(sha("processes", {"--nproc", "2"}) == dp);
}

TEST_CASE("the program says what it cannot do") {
  using namespace lockstep_test;
  for (auto const& [flags, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--data", "poses.csv"}, "generates its data"},
           {{"--eval-data", "poses.csv"}, "--eval-data poses.csv: this example generates its data"},
           {{"--d-model", "9", "--num-heads", "2"}, "choose a multiple"},
           {{"--vocabulary", "3"}, "--vocabulary 3"},
           {{"--samples", "1", "--nproc", "2"}, "2 ranks for 1 training samples"}}) {
    auto const outcome = run_example("pose_to_text", flags);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, says));
  }
}
