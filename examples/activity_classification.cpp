// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network to tell from a telephone's motion what its owner is doing, by the data set "Human
// Activity Recognition Using Smartphones" (--data FOLDER) or, without it, by generated motion.
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/data/source/uci_har_dataset.hpp>
#include <lockstep/lockstep.hpp>

#include "activity_classification/model.hpp"
#include "generated.hpp"

using namespace lockstep;
using activity_classification::ActivityClassifier;
using data::HarSample;

namespace {

struct Options : app::Options {
  activity_classification::Sizes sizes;
  Index samples = 2000;

  void flags(app::Command& command) {
    command.add("--width", sizes.width, 1, 4096, "Channels of the first convolution; the others have twice as many");
    command.add("--samples", samples, 1, 1000000, "Windows to generate without --data; a tenth more for evaluation");
  }
};

/// Steps of a pace and strength of their own, or the way that gravity points to whoever rests; and noise.
class Wearer {
 public:
  explicit Wearer(std::uint64_t seed) : seed_(seed) {}

  HarSample operator()(std::uint64_t index) const {
    struct Activity {
      double pace, strength;  // steps a second, g
      std::array<double, 3> down;
    };
    static constexpr std::array<Activity, 6> activities{{{1.9, 0.3, {1, 0, 0}},
                                                         {1.5, 0.3, {0.95, -0.3, 0}},
                                                         {2.4, 0.4, {0.95, 0.3, 0}},
                                                         {0, 0, {0.6, 0.5, 0.6}},
                                                         {0, 0, {0.98, 0.1, 0.1}},
                                                         {0, 0, {0, 0.8, 0.6}}}};
    auto const number = mix(seed_, index);
    Philox const draws(number);
    std::uint64_t drawn = 0;
    auto const draw = [&] { return 2.0 * uniform(draws, drawn++) - 1; };  // from -1 to 1
    auto const label = static_cast<std::int32_t>(number % activities.size());
    auto const& [pace, strength, down] = activities[static_cast<std::size_t>(label)];
    double const phase = draw() * std::numbers::pi, own_pace = pace * (1 + 0.1 * draw());
    HarSample sample{std::vector<std::array<float, 9>>(128), label};
    for (std::size_t t = 0; t < sample.signals.size(); ++t) {
      double const angle = phase + 2 * std::numbers::pi * own_pace * static_cast<double>(t) / 50;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        double const body = strength * std::sin(angle + static_cast<double>(axis)) + 0.1 * draw();
        sample.signals[t][axis] = static_cast<float>(body);
        sample.signals[t][3 + axis] = static_cast<float>(body + down[axis] + 0.1 * draw());
        sample.signals[t][6 + axis] = static_cast<float>(2 * strength * std::cos(angle) + 0.2 * draw());
      }
    }
    return sample;
  }

 private:
  std::uint64_t seed_;
};

using Windows = data::InMemoryDataset<HarSample>;
struct Parts {
  Windows training, evaluation;
};

Parts load(Options const& options) {
  if (options.data.empty()) {
    Index const count = options.samples;
    Wearer const wearer(options.seed);
    return {Windows(generated::Samples<Wearer>{wearer, 0, count}),
            Windows(generated::Samples<Wearer>{wearer, count, (count + 9) / 10})};
  }
  data::UciHarDataset const known(options.data, "train");
  auto const& tests = options.eval_data.empty() ? options.data : options.eval_data;
  if (!options.eval_data.empty() || std::filesystem::exists(tests + "/test"))
    return {Windows(known), Windows(data::UciHarDataset(tests, "test"))};
  auto const parts = data::hold_out(known, 0.1, options.seed);  // people who are not trained on
  return {Windows(parts.training), Windows(parts.evaluation)};
}

void check(Options const& options) {
  if (options.data.empty() && !options.eval_data.empty())
    throw ConfigError("--eval-data " + options.eval_data +
                      " without --data: what is generated has an evaluation of its own");
  app::check_samples(options,
                     options.data.empty() ? options.samples : data::UciHarDataset(options.data, "train").size());
}

int train_rank(app::Training<Options>& training) {
  auto const parts = load(training.options());
  return generated::fit(training, parts.training, parts.evaluation, data::PadCollate{},
                        ActivityClassifier(training.options().sizes), train::Accuracy(&HarSample::label));
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
