// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/detail/saved_file.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

namespace {

struct Point {
  float x, y;
};
struct Model {
  nn::Linear map{1, 1};
  void visit(auto&& each) { each("map", map); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return nn::mean_squared_error(context, map.forward(context, x), batch[&Point::y]);
  }
};
/// Has a model of another size or with other names.
struct Other {
  nn::Linear map{2, 1};
  char const* name = "map";
  void visit(auto&& each) { each(name, map); }
};

/// Trains, or resumes from `resume`; returns the error's message for a user of the command line.
template <class Optimizer = optim::SGD, class Policy = parallel::SingleDevice>
std::string fit(train::Checkpoints const& checkpoints, app::Options const& options, int samples = 8, Index batch = 2,
                Policy policy = {.threads = 1}, std::uint64_t seed = 5) {
  std::vector<Point> points;
  for (int i = 0; i < samples; ++i) points.push_back({static_cast<float>(i), static_cast<float>(i)});
  data::DataLoader loader{
      data::InMemoryDataset{points}, data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = batch, .workers = 0}};
  Trainer trainer{Model{}, Optimizer{.learning_rate = 0.001}, std::move(policy), seed};
  try {
    app::detail::with_saved_file("--resume", checkpoints.resume, options, [&] {
      trainer.fit(loader, FitOptions{.max_steps = checkpoints.resume.empty() ? 2 : 4, .checkpoints = checkpoints});
    });
  } catch (Error const& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

void check_speaks_of_flags(std::string const& message, std::string const& flag, std::string const& file) {
  CAPTURE(message);
  CHECK(message.starts_with(flag + " " + file + ": "));
  for (char const* const word : {"load(", "Reproducible", "DataLoader", "sampler", "function of names", "tail", "json"})
    CHECK_FALSE(contains(message, word));
}

}  // namespace

TEST_CASE("errors about a checkpoint name --resume, the file and the flags") {
  TemporaryFolder const folder;
  app::Options options;
  options.saved_flags = "--seed=2\n--width=16\n--depth=2\n";
  REQUIRE(
      fit({.folder = folder / "run", .metadata = {{"flags", "--seed=1\n--width=8\n--depth=2\n--gone=1\n"}}}, options)
          .empty());
  train::Checkpoints const from{.resume = folder / "run/step_2.safetensors"};
  auto const check = [&](std::string const& message, std::string const& says) {
    CAPTURE(message);
    check_speaks_of_flags(message, "--resume", from.resume);
    CHECK(contains(message, says));
    CHECK(message.ends_with("; it was saved with --width=8, and this run has --width=16"));
  };
  check(fit(from, options, 8, 4), "--batch-size, --grad-accum-steps and the numbers of ranks and devices determine it");
  check(fit(from, options, 8, 2, {.threads = 1}, 6), "was saved with --seed 5, but training would continue with 6");
  check(fit(from, options, 9), "was saved with a data set of 8 samples");
  check(fit(from, options, 9), "give the --data and --seed of the run that saved it, or start a new run without");
  check(fit<optim::AdamW>(from, options), "optimizer");
  check(fit(from, options, 8, 1, parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}),
        "without --reproducible, but training would continue with --reproducible and 2 shards");
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> const values(static_cast<std::size_t>(layout.size()));
  train::save_parameters(folder / "best.safetensors", layout, values, {});
  CHECK(fit({.resume = folder / "best.safetensors"}, options)
            .ends_with("resume from a step_N.safetensors, or start from these parameters with --init-from"));
  options.saved_flags = "--width=8\n";
  CHECK_FALSE(contains(fit(from, options, 9), "it was saved with"));  // equal flags, and one that is gone
}

TEST_CASE("errors about saved parameters name --init-from, the file, the tensor and the remedy") {
  TemporaryFolder const folder;
  auto const layout = [](auto model) { return nn::ParameterLayout::of(model); };
  auto const saved = layout(Model{});
  std::vector<float> const values(static_cast<std::size_t>(saved.size()));
  auto const file = folder / "a.safetensors";
  train::save_parameters(file, saved, values, {});
  auto const load = [&](nn::ParameterLayout const& model) {
    std::vector<float> out(static_cast<std::size_t>(model.size()));
    try {
      app::detail::with_saved_file("--init-from", file, {}, [&] { train::load_parameters(file, model, out); });
    } catch (DataError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(load(saved).empty());
  for (auto const& [name, says] : {std::pair<char const*, char const*>{"map", "\"map.weight\" has shape [1, 1]"},
                                   {"head", "has no parameter \"head.weight\""},
                                   {"a.map", "only parameters of equal names are read"}}) {
    auto const message = load(layout(Other{.name = name}));
    check_speaks_of_flags(message, "--init-from", file);
    CHECK(contains(message, says));
  }
  CHECK(contains(load(layout(Other{})), "give the flags for sizes that the file was saved with"));
  CHECK(contains(load(layout(Other{.name = "head"})), "give a file that this program saved"));
}

TEST_CASE("other errors pass unchanged") {
  app::Options const options;
  auto const thrown = [&](std::string const& file) {
    app::detail::with_saved_file("--resume", file, options, [] { throw DataError("b: is damaged"); });
  };
  CHECK_THROWS_WITH_AS(thrown("a"), "b: is damaged", DataError);
  CHECK_THROWS_WITH_AS(thrown(""), "b: is damaged", DataError);
  CHECK_THROWS_WITH_AS(thrown("b"), "--resume b: is damaged", DataError);
  CHECK(app::detail::with_saved_file("--resume", "a", options, [] { return 3; }) == 3);
}
