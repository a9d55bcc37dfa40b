// SPDX-License-Identifier: Apache-2.0
// Trains a transformer to choose actions for a target return, on recorded episodes (--data PATH) or, by default, on
// synthetic ones. docs/explanation/stories/trajectory-transformer.md describes the files.
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/lockstep.hpp>

#include "trajectory_transformer/data.hpp"
#include "trajectory_transformer/model.hpp"
#include "trajectory_transformer/synthetic.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using namespace trajectory_transformer;

namespace {

struct Options : app::Options {
  static constexpr char about[] =
      "Trains a transformer to choose actions for a target return.\n\n"
      "--data takes a folder with observations.npy, actions.npy, rewards.npy and episode_lengths.npy, or with an\n"
      ".npz file for each episode, or an HDF5 file of D4RL, Minari or robomimic (.hdf5, .h5), which is read into\n"
      "memory. tools/episodes_to_npz.py makes a folder from pickles and HDF5 files.\n"
      "docs/explanation/stories/trajectory-transformer.md has examples.";
  Sizes sizes;
  Index samples = 2000, actions = 0;
  double return_scale = 0;
  app::Precision precision = app::Precision::fp32;

  Options() { epochs = 8; }
  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--actions", actions, 0, 10000,
                "Number of actions to choose from; 0: as in the data, 18 for synthetic data");
    command.add("--max-length", sizes.steps, 1, 8192, "Steps per window whose actions are predicted");
    command.add("--context", sizes.context, 0, 8192, "Context: steps before a window that the model also reads");
    command.add("--return-scale", return_scale, 0, 1e30,
                "Divisor of the returns; 0: the largest return of the training data");
    command.add("--samples", samples, 2, 10000000, "Number of synthetic episodes to write without --data");
  }
  [[nodiscard]] BadEpisodes bad() const {
    return on_failure == data::OnFailure::raise ? BadEpisodes::refuse : BadEpisodes::leave_out;
  }
};

// ---- From files to windows.

struct Parts {
  Sizes sizes;
  Scaling scaling;
  data::Subset<Windows> training, evaluation;
  std::string left_out;  // sentence about unusable episodes, or empty
};

data::Subset<Windows> all(Windows windows) {
  std::vector<Index> numbers(static_cast<std::size_t>(windows.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return {std::move(windows), std::move(numbers)};
}

/// Returns the scaling of the parameters that --evaluate evaluates, which may belong to other data than --data.
std::optional<Scaling> saved_scaling(Options const& options) {
  if (!options.evaluate) return {};
  try {
    auto const& file = options.init_from;
    return Scaling::saved(json::parse(train::load_text(file, "trajectory_transformer"), file));
  } catch (DataError const&) {
    return {};  // not saved by this program; loading the parameters explains what else is wrong
  }
}

/// Opens the data. Reads up to `most_numbers` numbers to compute the scaling, or in `check` to validate them.
Parts load(Options const& options, Index most_numbers) {
  auto const actions = options.actions;
  Synthetic const synthetic{options.samples, options.sizes.steps, actions > 0 ? actions : 18, options.seed};
  auto const folder = app::data_folder(options, synthetic.recipe(), synthetic);
  auto const known = std::make_shared<Episodes const>(folder, options.bad());
  auto sizes = options.sizes;
  sizes.state_width = known->state_width();
  sizes.control_width = known->control_width();
  if (sizes.control_width > 0 && actions > 0)
    throw ConfigError("--actions " + std::to_string(actions) + " with --data " + folder +
                      ": the actions there are continuous; leave out --actions");
  auto const saved = saved_scaling(options);
  auto scaling = Scaling::of(*known, most_numbers, actions == 0 && saved ? saved->actions : actions, options.bad());
  if (saved) {
    if (saved->mean.size() != scaling.mean.size() || (saved->actions > 0) != (scaling.actions > 0))
      throw ConfigError("--data " + folder +
                        ": has other observations or actions than the run that saved --init-from " + options.init_from);
    scaling = *saved;
    if (actions > 0) scaling.actions = actions;
  }
  sizes.actions = scaling.actions;
  if (options.return_scale > 0) scaling.returns = static_cast<float>(options.return_scale);
  std::string left_out;
  if (known->left_out() > 0)
    left_out = std::to_string(known->left_out()) + " episodes cannot be used, such as " + known->first_left_out();
  Windows const drawn(known, sizes, scaling, Windows::Begin::drawn),
      in_turn(known, sizes, scaling, Windows::Begin::in_turn);
  if (options.eval_data.empty())
    return {sizes, scaling, data::hold_out(drawn, 0.1, options.seed).training,
            data::hold_out(in_turn, 0.1, options.seed).evaluation, left_out};
  auto const others = std::make_shared<Episodes const>(options.eval_data, options.bad());
  if (others->state_width() != sizes.state_width || others->control_width() != sizes.control_width)
    throw ConfigError("--eval-data " + options.eval_data + ": has other observations or actions than " + folder);
  static_cast<void>(Scaling::of(*others, most_numbers, sizes.actions, options.bad()));
  return {sizes, scaling, all(drawn), all({others, sizes, scaling, Windows::Begin::in_turn}), left_out};
}

/// Returns the settings that a program needs to act, in addition to the parameters.
train::Metadata metadata(Parts const& parts) {
  json::Writer out;
  out.begin_object();
  Sizes::each(parts.sizes, [&](char const* name, Index size) { out.member(name, size); });
  out.member("state_mean", parts.scaling.mean).member("state_factor", parts.scaling.factor);
  out.member("return_scale", parts.scaling.returns).end_object();
  return {{"trajectory_transformer", out.text()}};
}

// ---- Functions for app::run: the first before ranks start, the second in each rank.

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  if (options.data.empty() && !options.eval_data.empty())
    throw ConfigError("--eval-data " + options.eval_data + " without --data: synthetic data have an evaluation part");
  app::check_samples(options, load(options, Index{1} << 28).training.size());
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const parts = load(options, Index{1} << 23);
  if (training.is_main_rank() && !parts.left_out.empty()) std::printf("note: %s\n", parts.left_out.c_str());
  data::RaggedCollate const collate{.segment_plans = data::SegmentPlans::build};
  data::DataLoader batches{parts.training, data::ShuffledSampler{.seed = options.seed}, collate,
                           training.loader_options()};
  data::DataLoader evaluation{parts.evaluation, data::SequentialSampler{}, collate, training.loader_options()};
  training.fit(TrajectoryTransformer{parts.sizes}, optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, ActionScore{parts.sizes}}, metadata(parts));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
