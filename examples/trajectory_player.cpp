// SPDX-License-Identifier: Apache-2.0
// trajectory_player PARAMETERS.safetensors: acts with a trained trajectory transformer. Reads observations from
// standard input and writes an action for each to standard output, so that a simulator in any language can use it.
// tools/play_episodes.py runs Gymnasium's simulators. `help` below describes the lines.
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include "trajectory_transformer/model.hpp"

using namespace lockstep;
using namespace trajectory_transformer;

namespace {

constexpr char help[] =
    "trajectory_player PARAMETERS.safetensors: acts with a trained trajectory transformer\n\n"
    "Each line of the standard input is a step, and the answer to it is an action:\n"
    "  begin RETURN OBSERVATION…   begins an episode with the target RETURN\n"
    "  next REWARD OBSERVATION…    continues it with the reward of the last action\n"
    "An action is a number, or the numbers of a continuous action.";

class Player {
 public:
  explicit Player(std::string const& path)
      : saved_(json::parse(train::load_text(path, "trajectory_transformer"), path)),
        sizes_(sizes_of(saved_)),
        predictor_(TrajectoryTransformer(sizes_), path),
        return_scale_(saved_.at("return_scale").number()) {
    for (auto const& each : saved_.at("state_mean").array()) mean_.push_back(static_cast<float>(each.number()));
    for (auto const& each : saved_.at("state_factor").array()) factor_.push_back(static_cast<float>(each.number()));
  }

  /// Returns the answer to one line.
  [[nodiscard]] std::string answer(std::string const& line) {
    std::istringstream words(line);
    std::string command;
    double number = 0;
    words >> command >> number;
    std::vector<float> state;
    for (float each = 0; words >> each;) state.push_back(each);
    bool const begins = command == "begin", valid = begins || (command == "next" && !steps_.returns.empty());
    if (!valid || !words.eof() || state.size() != mean_.size())
      throw DataError("the line \"" + line +
                      "\" is neither \"begin RETURN OBSERVATION\" nor, after it, \"next REWARD " +
                      "OBSERVATION\" with " + std::to_string(mean_.size()) + " numbers of an observation");
    if (begins) steps_ = {};
    to_come_ = begins ? number : to_come_ - number;
    if (std::ssize(steps_.returns) == sizes_.context + sizes_.steps) forget_first();
    steps_.returns.push_back(static_cast<float>(to_come_ / return_scale_));
    for (std::size_t k = 0; k < state.size(); ++k) steps_.states.push_back((state[k] - mean_[k]) * factor_[k]);
    return act();
  }

 private:
  static Sizes sizes_of(json::Value const& saved) {
    Sizes sizes;
    Sizes::each(sizes, [&](char const* name, Index& size) { size = static_cast<Index>(saved.at(name).integer()); });
    return sizes;
  }
  void forget_first() {
    auto const drop = [](auto& numbers, Index count) {
      if (!numbers.empty()) numbers.erase(numbers.begin(), numbers.begin() + count);
    };
    drop(steps_.returns, 1);
    drop(steps_.states, sizes_.state_width);
    drop(steps_.actions, 1);
    drop(steps_.controls, sizes_.control_width);
  }
  /// Predicts the action of the last step, replaces its placeholder, and returns it.
  [[nodiscard]] std::string act() {
    auto const width = sizes_.control_width;
    if (sizes_.actions > 0)
      steps_.actions.push_back(0);
    else
      steps_.controls.resize(steps_.controls.size() + static_cast<std::size_t>(width));
    data::Collated const batch{data::RaggedCollate{}, std::vector<Window>{steps_}};
    auto const predicted = predictor_.predict(batch.batch());
    auto const outputs = predicted.tokens.extent(1);
    auto const* const last = predicted.tokens.value.data + (predicted.tokens.extent(0) - 1) * outputs;
    if (sizes_.actions > 0) {
      auto const best = std::max_element(last, last + outputs) - last;
      steps_.actions.back() = static_cast<std::int32_t>(best);
      return std::to_string(best);
    }
    std::copy_n(last, width, steps_.controls.end() - width);
    std::ostringstream out;
    out.precision(9);
    for (Index k = 0; k < width; ++k) out << (k > 0 ? " " : "") << last[k];
    return out.str();
  }

  json::Value saved_;
  Sizes sizes_;
  train::Predictor<TrajectoryTransformer> predictor_;
  double return_scale_, to_come_ = 0;
  std::vector<float> mean_, factor_;
  Window steps_;  // latest steps of the episode, at most the model's number of positions
};

/// Reads a line of the standard input; false at its end.   @throws DataError for a line that no episode has
bool next_line(std::string& line) {
  constexpr std::size_t most = 1 << 20;
  line.clear();
  for (char c = 0; std::cin.get(c) && c != '\n';) {
    line += c;
    if (line.size() > most)
      throw DataError("a line of the standard input has more than " + std::to_string(most) + " bytes; end each step");
  }
  return !line.empty() || std::cin.good();
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("trajectory_player", [&] {
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
      std::cout << help << '\n';
      return 0;
    }
    if (argc != 2) throw ConfigError("give the file of a trained model, SAVE_DIR/checkpoints/….safetensors");
    Player player(argv[1]);
    for (std::string line; next_line(line);) std::cout << player.answer(line) << std::endl;
    return 0;
  });
}
