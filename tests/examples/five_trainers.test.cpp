// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <lockstep/core/json.hpp>

#include "examples/program.hpp"
#include "temporary_folder.hpp"

using namespace lockstep_test;
namespace json = lockstep::json;

namespace {

using Flags = std::vector<std::string>;
Flags both(Flags a, Flags const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Story {
  std::string trainer;
  Flags sizes;      ///< of a tiny model
  Flags synthetic;  ///< of the data set that the trainer writes; none: a CSV file
};
std::vector<Story> stories() {
  Flags const transformer{"--d-model", "8", "--num-heads", "2", "--num-layers", "1", "--feed-forward", "8"};
  std::vector<Story> all{
      {"activity_classification", {"--width", "4"}, {"--samples", "46"}},
      {"text_classification", transformer, {}},
      {"trajectory_transformer", both(transformer, {"--max-length", "4", "--context", "2"}), {"--samples", "30"}},
      {"video_classification", {"--channels", "4,4"}, {"--samples", "46", "--frames", "4", "--height", "16"}}};
  if (std::getenv("LOCKSTEP_PROGRAM_pose_to_text") != nullptr)  // needs sentencepiece
    all.push_back({"pose_to_text", both(transformer, {"--beam", "2"}), {"--samples", "46", "--max-length", "3"}});
  return all;
}

/// Returns a data set in the format of the story.
std::string data_of(Story const& story, TemporaryFolder const& folder) {
  if (story.synthetic.empty()) {
    std::string csv;
    for (int i = 0; i < 60; ++i)
      csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"word" + std::to_string(i % 4) + " and " +
             std::to_string(i) + "\"\n";
    return save(folder, "data.csv", csv);
  }
  auto const first = run_example(story.trainer, both(both(story.sizes, story.synthetic),
                                                     {"--max-steps", "1", "--save-dir", folder / story.trainer}));
  CAPTURE(first.err);
  REQUIRE(first.exit_code == 0);
  return folder / (story.trainer + "/data");
}

json::Value run_json(std::string const& folder) { return json::parse(read_file(folder + "/run.json"), folder); }

/// Returns the last evaluation that the program printed.
std::string evaluation_of(Outcome const& outcome) {
  auto const at = outcome.out.rfind("evaluation loss ");
  REQUIRE(at != std::string::npos);
  return outcome.out.substr(at, outcome.out.find('\n', at) - at);
}

}  // namespace

TEST_CASE("each trainer trains from files, evaluates, and resumes in an epoch, as single, dp and ddp") {
  for (auto const& story : stories()) {
    CAPTURE(story.trainer);
    TemporaryFolder const folder;
    auto const common = both(story.sizes, {"--data", data_of(story, folder), "--threads", "1", "--batch-size", "4"});
    auto const program = [&](Flags const& more) {
      auto const outcome = run_example(story.trainer, both(common, more));
      CAPTURE(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return outcome;
    };
    std::string parameters_of_dp;
    for (auto const& policy :
         {Flags{"--parallel", "single"}, {"--parallel", "dp", "--devices", "2"}, {"--nproc", "2"}}) {
      auto const name = folder / (policy[0].substr(2) + policy[1]);
      CAPTURE(name);
      auto const train = [&](std::string const& as, Flags const& more) {
        return program(both(both(policy, more), {"--epochs", "1", "--save-dir", as}));
      };
      auto const outcome = train(name, {"--checkpoint-every", "3"});
      auto const whole = run_json(name);
      auto const steps = whole.at("steps").integer();
      CHECK(steps > 3);  // so the third step lies within the epoch
      CHECK(whole.at("world_size").integer() == (policy[0] == "--nproc" ? 2 : 1));

      train(name + "-resumed", {"--resume", name + "/checkpoints/step_3.safetensors"});
      auto const resumed = run_json(name + "-resumed");
      REQUIRE(resumed.at("resumed_at").array().size() == 1);
      CHECK(resumed.at("resumed_at").at(std::size_t{0}).integer() == 3);
      CHECK(resumed.at("steps").integer() == steps);
      CHECK(resumed.at("parameters_sha256") == whole.at("parameters_sha256"));
      CHECK(resumed.at("final") == whole.at("final"));

      auto const saved = name + "/checkpoints/step_" + std::to_string(steps) + ".safetensors";
      CHECK(evaluation_of(program(both(policy, {"--evaluate", "--init-from", saved}))) == evaluation_of(outcome));

      auto const parameters = whole.at("parameters_sha256").string();
      if (policy[1] == "dp") parameters_of_dp = parameters;
      if (policy[0] == "--nproc") CHECK(parameters == parameters_of_dp);
    }
  }
}
