// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/checkpoint/checkpoint.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "temporary_folder.hpp"
#include "train/texts.hpp"
#include "unprivileged.hpp"

using namespace lockstep;
using lockstep_test::random_texts;
using lockstep_test::Text;

namespace {

constexpr Index words = 50, longest = 6;

/// With all state that a checkpoint must restore: moments, a row-sparse table, dropout, and running statistics.
class Model {
 public:
  explicit Model(Index width = 8)
      : embedding_({.vocabulary = words,
                    .length = longest,
                    .width = width,
                    .dropout = 0.2,
                    .token_gradient = nn::GradientForm::by_rows}),
        norm_(width),
        head_(width, 3) {}
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("norm", norm_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    return head_.forward(context, norm_.forward(context, nn::mean_pool(context, x)));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_;
  nn::BatchNorm norm_;
  nn::Linear head_;
};

constexpr int samples = 23;  // with batches of 4 and two per step: 3 steps per epoch, the last of them short
auto loader(Index batch_size, std::uint64_t seed = 1) {
  return data::DataLoader{data::InMemoryDataset{random_texts(samples, 1)},
                          data::ShuffledSampler{.seed = seed},
                          data::PadCollate{},
                          {.batch_size = batch_size, .workers = 0}};
}

struct Outcome {
  std::vector<float> values, buffers;
  train::RunRecord record;
};

template <class Trained = Model, class Policy, class Optimizer = optim::AdamW>
Outcome fit(Policy policy, FitOptions const& options, Index batch_size = 4,
            Optimizer optimizer = {.learning_rate = 1e-2}) {
  Trainer trainer{Trained(Model{}), optimizer, std::move(policy), 5};
  auto batches = loader(batch_size);
  auto held_out = data::DataLoader{data::InMemoryDataset{random_texts(9, 2)},
                                   data::SequentialSampler{},
                                   data::PadCollate{},
                                   {.batch_size = 4, .workers = 0}};
  auto record = trainer.fit(batches, train::Evaluation{held_out, train::Accuracy{&Text::label}}, options);
  return {{trainer.values().begin(), trainer.values().end()},
          {trainer.buffers().begin(), trainer.buffers().end()},
          std::move(record)};
}
/// With two ranks; returns the first one's outcome.
Outcome fit_ranks(FitOptions const& options) {
  std::vector<Outcome> all(2);
  launch::Options ranks;
  ranks.threads = 2;
  launch::run(ranks, [&](launch::World& world) {
    auto own = options;
    if (world.rank > 0) own.checkpoints = {};  // the first one's counts
    all[static_cast<std::size_t>(world.rank)] =
        fit(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, own, 2);
    return 0;
  });
  CHECK(all[0].values == all[1].values);
  return all[0];
}

bool is_matrix(std::string_view, std::span<Index const> shape) { return shape.size() == 2; }

std::string step_file(std::string const& folder, Index step) {
  return folder + "/step_" + std::to_string(step) + ".safetensors";
}

/// Trains 4 epochs at once, and again with pauses after `first` and `second` steps: results must be equal.
template <class Fit>
void check_pauses(Fit const& fit_with, Index first, Index second) {
  CAPTURE(first);
  lockstep_test::TemporaryFolder const folder;
  auto const whole = fit_with({.epochs = 4, .accumulation = 2, .clip_norm = 0.5});
  auto const part = [&](Index from, Index to) {
    return fit_with({.epochs = 4,
                     .max_steps = to,
                     .accumulation = 2,
                     .clip_norm = 0.5,
                     .checkpoints = {.folder = folder / "checkpoints",
                                     .resume = from == 0 ? "" : step_file(folder / "checkpoints", from)}});
  };
  part(0, first), part(first, second);
  auto const last = part(second, 12);
  CHECK(last.values == whole.values);
  CHECK(last.buffers == whole.buffers);
  CHECK(last.record.steps == 12);
  CHECK(last.record.samples == whole.record.samples);
  CHECK(last.record.resumed_at == std::vector<Index>{first, second});
  CHECK(last.record.step_seconds.size() == static_cast<std::size_t>(12 - second));
  CHECK(last.record.train_loss == whole.record.train_loss);
  CHECK(last.record.evaluations.back().loss == whole.record.evaluations.back().loss);
  CHECK(last.record.evaluations.back().step == 12);
}

struct Steps : train::Observer {
  train::StartReport began;
  std::vector<train::StepReport> steps;
  Index throws_after = 0;
  void start(train::StartReport const& report) override { began = report; }
  void step(train::StepReport const& report) override {
    steps.push_back(report);
    if (report.step == throws_after) throw Error("pulled the plug");
  }
};

/// Requests a stop after this many steps.
struct Asks : train::Observer {
  std::stop_source source;
  Index after = 0;
  void step(train::StepReport const& report) override {
    if (report.step == after) source.request_stop();
  }
};

}  // namespace

TEST_CASE("a resumed run ends with the bits of an uninterrupted one") {
  for (auto [first, second] : {std::pair<Index, Index>{1, 2}, {3, 7}, {4, 9}, {10, 11}}) {
    check_pauses([](FitOptions const& o) { return fit(parallel::SingleDevice{.threads = 1}, o); }, first, second);
    check_pauses([](FitOptions const& o) { return fit(parallel::DataParallel{.devices = 2, .threads = 1}, o, 2); },
                 first, second);
    check_pauses(fit_ranks, first, second);
  }
}

TEST_CASE("runs resume with other optimizers, and other numbers of devices, too") {
  check_pauses(
      [](FitOptions const& o) {
        return fit(parallel::SingleDevice{.threads = 1}, o, 4, optim::SGD{.learning_rate = 0.1, .momentum = 0.9});
      },
      4, 5);
  optim::Partitioned const both{optim::Muon{.learning_rate = 0.02}, optim::AdamW{.learning_rate = 1e-2}, is_matrix};
  check_pauses([&](FitOptions const& o) { return fit(parallel::DataParallel{.devices = 2, .threads = 1}, o, 2, both); },
               4, 5);
  // One device began, two ranks continued and two devices ended: equal to two ranks that got that checkpoint.
  lockstep_test::TemporaryFolder const folder;
  auto const part = [&](auto const& fit_with, std::string const& to, std::string const& from, Index steps) {
    return fit_with(FitOptions{
        .epochs = 4, .max_steps = steps, .accumulation = 2, .checkpoints = {.folder = folder / to, .resume = from}});
  };
  auto const single = [](FitOptions const& o) { return fit(parallel::SingleDevice{.threads = 1}, o); };
  auto const dp = [](FitOptions const& o) { return fit(parallel::DataParallel{.devices = 2, .threads = 1}, o, 2); };
  part(single, "a", "", 4);
  part(fit_ranks, "b", step_file(folder / "a", 4), 8);
  auto const mixed = part(dp, "c", step_file(folder / "b", 8), 12);
  auto const ranks = part(fit_ranks, "d", step_file(folder / "a", 4), 12);
  CHECK(mixed.values == ranks.values);
  CHECK(mixed.record.samples == 4 * samples);
}

TEST_CASE("in float16 the loss scale continues, and so does the count of skipped steps") {
  FitOptions const scaled{.loss_scaler = {.start = 0x1p14, .growth_interval = 2}};
  auto const with_scale = [&](FitOptions options) {
    options.loss_scaler = scaled.loss_scaler;
    return options;
  };
  auto const single = [&](FitOptions const& o) {
    return fit<nn::InFloat16<Model>>(parallel::SingleDevice{.threads = 1}, with_scale(o));
  };
  auto const dp = [&](FitOptions const& o) {
    return fit<nn::InFloat16<Model>>(parallel::DataParallel{.devices = 2, .threads = 1}, with_scale(o), 2);
  };
  check_pauses(single, 1, 4);
  check_pauses(dp, 5, 7);
  lockstep_test::TemporaryFolder const folder;
  FitOptions options{.epochs = 4, .accumulation = 2};
  auto const whole = single(options);
  REQUIRE(whole.record.loss_scale);
  CHECK(whole.record.loss_scale.skipped > 3);
  CHECK(whole.record.loss_scale.skipped < 12);
  options.max_steps = 9;
  options.checkpoints.folder = folder / "half";
  single(options);
  options.max_steps = 0;
  options.checkpoints = {.resume = step_file(folder / "half", 9)};
  CHECK(single(options).record.loss_scale == whole.record.loss_scale);
  CHECK_FALSE(fit(parallel::SingleDevice{.threads = 1}, options).record.loss_scale);  // float32 resumes from it, too
  options.max_steps = 5;
  options.checkpoints = {.folder = folder / "full"};
  fit(parallel::SingleDevice{.threads = 1}, options);
  options.checkpoints = {.resume = step_file(folder / "full", 5)};
  options.max_steps = 6;
  auto const late = single(options).record.loss_scale;  // and float16 from the initial scale
  CHECK(late == optim::LossScaler::State{0x1p13f, 0, 1});
}

TEST_CASE("checkpoints are written at the interval and after the last step; a killed run resumes from the newest") {
  lockstep_test::TemporaryFolder const folder;
  auto const checkpoints = folder / "checkpoints";
  CHECK(train::newest_checkpoint(checkpoints).empty());
  FitOptions options{.epochs = 4, .accumulation = 2, .checkpoints = {.folder = checkpoints, .every = 5}};
  auto const whole = fit(parallel::SingleDevice{.threads = 1}, {.epochs = 4, .accumulation = 2});
  Steps dies;
  dies.throws_after = 8;
  options.observers = {&dies};
  CHECK_THROWS_AS(fit(parallel::SingleDevice{.threads = 1}, options), Error);
  CHECK(train::newest_checkpoint(checkpoints) == step_file(checkpoints, 5));

  Steps goes_on;
  options.observers = {&goes_on};
  options.checkpoints.resume = train::newest_checkpoint(checkpoints);
  auto const rest = fit(parallel::SingleDevice{.threads = 1}, options);
  CHECK(rest.values == whole.values);
  CHECK(rest.record.samples_before == samples + 16);  // its speed leaves them out
  CHECK(goes_on.began.resumed == 5);
  CHECK(goes_on.began.steps == 12);
  REQUIRE(goes_on.steps.size() == 7);
  CHECK(goes_on.steps[0].step == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(goes_on.steps[i].loss == dies.steps[5 + i].loss);
  CHECK(goes_on.steps[0].seconds > dies.steps[4].seconds);  // the pause does not count, earlier time does
  CHECK(train::newest_checkpoint(checkpoints) == step_file(checkpoints, 12));  // not step_10, as in text order

  // A completed run is unchanged.
  Steps hears_nothing;
  options.observers = {&hears_nothing};
  options.checkpoints.resume = step_file(checkpoints, 12);
  auto const again = fit(parallel::SingleDevice{.threads = 1}, options);
  CHECK(again.values == whole.values);
  CHECK(again.record.steps == 12);
  CHECK(again.record.train_loss == whole.record.train_loss);
  CHECK(again.record.evaluations.back().loss == whole.record.evaluations.back().loss);
  CHECK(hears_nothing.began.steps == 0);  // nor do its logs begin again
  CHECK(hears_nothing.steps.empty());
}

TEST_CASE("all ranks stop on request after one step, or before an evaluation, and end like an uninterrupted run") {
  auto const single = [](FitOptions const& o) { return fit(parallel::SingleDevice{.threads = 1}, o); };
  auto const dp = [](FitOptions const& o) { return fit(parallel::DataParallel{.devices = 2, .threads = 1}, o, 2); };
  auto const check_stop = [](auto const& fit_with, Index after) {
    CAPTURE(after);
    lockstep_test::TemporaryFolder const folder;
    auto const whole = fit_with({.epochs = 4, .accumulation = 2});
    Asks asks;
    asks.after = after;
    FitOptions options{.epochs = 4, .accumulation = 2, .checkpoints = {.folder = folder / "checkpoints"}};
    options.stop = asks.source.get_token();
    options.observers = {&asks};
    auto const part = fit_with(options);
    CHECK(part.record.stopped);
    // A request between two steps takes effect with the second, or in an evaluation between them, which is not made.
    auto const last = after % 3 == 0 ? after : after + 1;
    CHECK(part.record.steps == last);
    CHECK(part.record.evaluations.size() == static_cast<std::size_t>((last - 1) / 3));
    CHECK(train::newest_checkpoint(folder / "checkpoints") == step_file(folder / "checkpoints", last));
    options.stop = {};
    options.observers.clear();
    options.checkpoints.resume = train::newest_checkpoint(folder / "checkpoints");
    auto const rest = fit_with(options);
    CHECK_FALSE(rest.record.stopped);
    CHECK(rest.values == whole.values);
    CHECK(rest.buffers == whole.buffers);
    CHECK(rest.record.train_loss == whole.record.train_loss);
    CHECK(rest.record.evaluations.size() == whole.record.evaluations.size());
  };
  check_stop(single, 4);
  check_stop(dp, 6);
  check_stop(fit_ranks, 4);
  check_stop(single, 5);
}

TEST_CASE("a request on one rank is enough, and one at the last step has an effect if an evaluation is due") {
  lockstep_test::TemporaryFolder const folder;
  for (auto const& [request, with_evaluations] : {std::pair<Index, bool>{3, true}, {7, true}, {7, false}}) {
    auto const after = request;  // out of 8 steps
    bool const evaluates = with_evaluations;
    auto const own_folder = folder / (std::to_string(after) + std::to_string(evaluates));
    std::vector<Outcome> all(3);
    launch::Options ranks;
    ranks.threads = 3;
    launch::run(ranks, [&](launch::World& world) {
      Asks asks;
      asks.after = after;
      FitOptions own{.epochs = 4,
                     .accumulation = 2,
                     .evaluate_every_epochs = evaluates ? 1 : 0,
                     .checkpoints = {.folder = own_folder}};
      own.observers = {&asks};
      if (world.rank == 2) own.stop = asks.source.get_token();
      all[static_cast<std::size_t>(world.rank)] =
          fit(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, own, 2);
      return 0;
    });
    for (auto const& each : all) {
      CHECK(each.record.stopped == (after == 3 || evaluates));
      CHECK(each.record.steps == after + 1);
      CHECK(each.record.evaluations.size() == (evaluates ? static_cast<std::size_t>(after / 2) : 0));
      CHECK(each.values == all[0].values);
    }
    CHECK(train::newest_checkpoint(own_folder) == step_file(own_folder, after + 1));
  }
}

TEST_CASE("the newest checkpoints up to the limit are kept, and other runs' files remain") {
  lockstep_test::TemporaryFolder const folder;
  auto const saved = folder / "saved";
  auto const run = [&](Index keep, Index to, std::string const& from) {
    fit(parallel::SingleDevice{.threads = 1},
        {.epochs = 4,
         .max_steps = to,
         .accumulation = 2,
         .checkpoints = {.folder = saved, .every = 2, .keep = keep, .resume = from}});
    return train::checkpoint_steps(saved);
  };
  using Steps = std::vector<Index>;
  CHECK(run(0, 4, "") == Steps{2, 4});
  CHECK(run(3, 7, step_file(saved, 4)) == Steps{4, 6, 7});
  lockstep_test::write_file(saved + "/best.safetensors", "x");
  CHECK(run(1, 9, step_file(saved, 7)) == Steps{9});
  lockstep_test::write_file(step_file(saved, 20), "of another run");
  train::remove_old_checkpoints(saved, 9, 1);
  CHECK(train::checkpoint_steps(saved) == Steps{9, 20});
  CHECK(lockstep_test::read_file(saved + "/best.safetensors") == "x");
}

TEST_CASE("a dry run checks the folder for checkpoints, and changes nothing") {
  lockstep_test::TemporaryFolder const folder;
  auto const run = [&](std::string const& to, std::string const& from, bool dry) {
    return fit(parallel::SingleDevice{.threads = 1},
               {.max_steps = 2, .checkpoints = {.folder = to, .resume = from}, .dry_run = dry});
  };
  run(folder / "new/deep", "", true);
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
  run(folder / "saved", "", false);
  CHECK_THROWS_WITH_AS(run(folder / "saved", "", true),
                       doctest::Contains("the checkpoint folder has checkpoints of an earlier run"), ConfigError);
  lockstep_test::write_file(folder / "file", "");
  CHECK_THROWS_WITH_AS(run(folder / "file", "", true),
                       doctest::Contains("file: checkpoints cannot be written there: Not a directory"), DataError);
  std::filesystem::create_directory(folder / "fixed");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder / "fixed", std::filesystem::perms(0555));
  if (lockstep_test::Unprivileged const nobody; nobody) {
    CHECK_THROWS_WITH_AS(run(folder / "fixed", "", true),
                         doctest::Contains("fixed: checkpoints cannot be written there: Permission denied"), DataError);
    CHECK_THROWS_WITH_AS(run(folder / "fixed/new/deep", "", true),
                         doctest::Contains("fixed/new/deep: cannot make the folder for checkpoints in"), DataError);
  }
}

TEST_CASE("a folder for checkpoints is created before the first step, with its parents, or refused") {
  lockstep_test::TemporaryFolder const folder;
  lockstep_test::write_file(folder / "file", "");
  Steps none;
  for (auto const& [path, why] :
       {std::pair{"file", "file: checkpoints cannot be written there: Not a directory"},
        std::pair{"file/deep/er", "file/deep/er: cannot make the folder for checkpoints: Not a directory"}}) {
    FitOptions const options{.checkpoints = {.folder = folder / path}, .observers = {&none}};
    CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, options), doctest::Contains(why), DataError);
  }
  CHECK(none.steps.empty());
  auto const deep = folder / "not/there/yet";
  fit(parallel::SingleDevice{.threads = 1}, {.checkpoints = {.folder = deep}});
  CHECK_FALSE(train::newest_checkpoint(deep).empty());
}

TEST_CASE("a new run does not mix its checkpoints with an earlier run's") {
  lockstep_test::TemporaryFolder const folder;
  auto const run = [&](Index to, std::string const& from) {
    fit(parallel::SingleDevice{.threads = 1},
        {.max_steps = to, .checkpoints = {.folder = folder / "saved", .resume = from}});
  };
  run(2, "");
  lockstep_test::write_file(folder / "saved/step_4.safetensors.partial", "of the earlier run, which may still save");
  CHECK_THROWS_WITH_AS(
      run(1, ""),
      ("fit: the checkpoint folder has checkpoints of an earlier run, the newest " + step_file(folder / "saved", 2) +
       ", but this run starts from step 0; name another folder, remove them, or resume with .resume = "
       "train::newest_checkpoint(folder)")
          .c_str(),
      ConfigError);
  CHECK(std::filesystem::exists(folder / "saved/step_4.safetensors.partial"));
  lockstep_test::write_file(folder / "saved/step_2.safetensors.partial", "of a run that was killed");
  lockstep_test::write_file(folder / "saved/notes.partial", "of somebody else");
  run(3, train::newest_checkpoint(folder / "saved"));
  CHECK_FALSE(std::filesystem::exists(folder / "saved/step_2.safetensors.partial"));
  CHECK(std::filesystem::exists(folder / "saved/notes.partial"));
  CHECK(train::checkpoint_steps(folder / "saved") == std::vector<Index>{2, 3});
}

TEST_CASE("an unreadable folder is not taken for an empty one") {
  lockstep_test::TemporaryFolder const folder;
  CHECK(train::newest_checkpoint(folder / "missing").empty());
  lockstep_test::write_file(folder / "file", "");
  CHECK_THROWS_WITH_AS(static_cast<void>(train::newest_checkpoint(folder / "file")),
                       doctest::Contains("file: cannot look for checkpoints there: Not a directory"), DataError);
  auto const hidden = folder / "hidden";
  std::filesystem::create_directory(hidden);
  lockstep_test::write_file(step_file(hidden, 20), "of an earlier run");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(hidden, std::filesystem::perms(0333));
  if (lockstep_test::Unprivileged const nobody; nobody)
    CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, {.max_steps = 1, .checkpoints = {.folder = hidden}}),
                         doctest::Contains("hidden: cannot look for checkpoints there: Permission denied"), DataError);
  std::filesystem::permissions(hidden, std::filesystem::perms::all);
  CHECK(lockstep_test::read_file(step_file(hidden, 20)) == "of an earlier run");
}

TEST_CASE("a folder keeps its place when the process changes its working directory") {
  struct Leaves final : train::Observer {
    void step(train::StepReport const& report) override {
      if (report.step == 3) std::filesystem::current_path("/");
    }
  } leaves;
  lockstep_test::TemporaryFolder const folder;
  auto const here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  fit(parallel::SingleDevice{.threads = 1},
      {.max_steps = 6, .checkpoints = {.folder = "saved", .every = 2, .keep = 2}, .observers = {&leaves}});
  std::filesystem::current_path(here);
  CHECK(train::checkpoint_steps(folder / "saved") == std::vector<Index>{4, 6});
}

TEST_CASE("patience and a plateau continue over a pause, and evaluations are restored") {
  lockstep_test::TemporaryFolder const folder;
  FitOptions options{.epochs = 60, .accumulation = 2, .patience = 3, .plateau = {.patience = 1, .factor = 0.5}};
  for (auto ranks : {false, true}) {
    auto const fit_with = [&](FitOptions const& o) {
      return ranks ? fit_ranks(o) : fit(parallel::SingleDevice{.threads = 1}, o);
    };
    options.checkpoints = {.folder = folder / (ranks ? "ranks" : "one"), .every = 2};
    options.checkpoints.resume.clear();
    auto const whole = fit_with(options);
    REQUIRE(whole.record.steps > 10);  // or nothing would be restored
    REQUIRE(whole.record.steps < 180);
    for (Index step : {4, 10}) {
      options.checkpoints = {.resume = step_file(folder / (ranks ? "ranks" : "one"), step)};
      auto const rest = fit_with(options);
      CHECK(rest.record.steps == whole.record.steps);
      CHECK(rest.values == whole.values);
      REQUIRE(rest.record.evaluations.size() == whole.record.evaluations.size());
      for (std::size_t i = 0; i < whole.record.evaluations.size(); ++i) {
        CHECK(rest.record.evaluations[i].loss == whole.record.evaluations[i].loss);
        CHECK(rest.record.evaluations[i].best == whole.record.evaluations[i].best);
      }
    }
    options.checkpoints = {.resume = train::newest_checkpoint(folder / (ranks ? "ranks" : "one"))};
    CHECK(fit_with(options).record.steps == whole.record.steps);
    CHECK(fit_with(options).record.step_seconds.empty());
  }
}

TEST_CASE("a checkpoint is a file of parameters too") {
  lockstep_test::TemporaryFolder const folder;
  auto const outcome = fit(parallel::SingleDevice{.threads = 1},
                           {.checkpoints = {.folder = folder / "saved", .metadata = {{"classes", "a b c"}}}});
  train::Predictor const predictor(Model{}, train::newest_checkpoint(folder / "saved"));
  CHECK(predictor.metadata() == train::Metadata{{"classes", "a b c"}});  // and nothing of a run
  std::vector<float> values(outcome.values.size()), buffers(outcome.buffers.size());
  train::load_parameters(train::newest_checkpoint(folder / "saved"), predictor.layout(), values, buffers);
  CHECK(values == outcome.values);
  CHECK(buffers == outcome.buffers);

  Trainer again{Model{}, optim::AdamW{}, parallel::DataParallel{.devices = 2, .threads = 1}, 6};
  again.load(train::newest_checkpoint(folder / "saved"));
  auto held_out = loader(2);
  again.evaluate(train::Evaluation{held_out});  // by the mean of all devices' buffers
  CHECK(std::vector<float>(again.values().begin(), again.values().end()) == outcome.values);
  CHECK(std::vector<float>(again.buffers().begin(), again.buffers().end()) == outcome.buffers);
}

TEST_CASE("a run does not resume if other parameters have the first of two optimizers, or if Muon gets no matrix") {
  lockstep_test::TemporaryFolder const folder;
  parallel::SingleDevice const single{.threads = 1};
  auto const with = [&](auto rule, std::string const& resume) {
    fit(single, {.max_steps = resume.empty() ? 2 : 3, .checkpoints = {.folder = folder / "saved", .resume = resume}}, 4,
        optim::Partitioned{optim::Muon{}, optim::AdamW{}, rule});
  };
  with(is_matrix, "");
  auto const file = step_file(folder / "saved", 2);
  auto const head = [](std::string_view name, std::span<Index const>) { return name == "head.weight"; };
  CHECK_THROWS_WITH_AS(with(head, file), doctest::Contains("was saved with the optimizer Muon and AdamW for "),
                       ConfigError);
  CHECK_THROWS_WITH_AS(with(head, file), doctest::Contains("continue with Muon and AdamW for 1 and "), ConfigError);
  CHECK_NOTHROW(with(is_matrix, file));
  auto const all = [](std::string_view, std::span<Index const>) { return true; };
  CHECK_THROWS_WITH_AS(with(all, ""), doctest::Contains("Muon updates matrices, which have two axes"), ConfigError);
}

TEST_CASE("a checkpoint that does not fit the run is refused, by name and with both values") {
  lockstep_test::TemporaryFolder const folder;
  fit(parallel::SingleDevice{.threads = 1}, {.max_steps = 2, .checkpoints = {.folder = folder / "saved"}});
  auto const file = step_file(folder / "saved", 2);
  auto const refused = [&](auto const& sentence, auto const& train) {
    CHECK_THROWS_WITH(train(FitOptions{.epochs = 2, .checkpoints = {.resume = file}}), doctest::Contains(sentence));
  };
  parallel::SingleDevice const single{.threads = 1};
  refused("was saved with an effective batch of 4, but training would continue with 8",
          [&](FitOptions const& o) { fit(single, o, 8); });
  refused("and the model with its optimizer has",
          [&](FitOptions const& o) { fit(single, o, 4, optim::SGD{.learning_rate = 0.1, .momentum = 0.9}); });
  refused("was saved with the optimizer AdamW, but training would continue with Adam",
          [&](FitOptions const& o) { fit(single, o, 4, optim::Adam{}); });
  refused("was saved with the seed 5, but training would continue with 6", [&](FitOptions const& o) {
    Trainer trainer{Model{}, optim::AdamW{}, single, 6};
    auto batches = loader(4);
    trainer.fit(batches, train::NoEvaluation{}, o);
  });
  refused("resume with the data, sampler and seed of the earlier run", [&](FitOptions const& o) {
    Trainer trainer{Model{}, optim::AdamW{}, single, 5};
    auto batches = loader(4, 2);
    trainer.fit(batches, train::NoEvaluation{}, o);
  });
  refused("resume with the data, sampler and seed of the earlier run", [&](FitOptions const& o) {  // not by its batch
    Trainer trainer{Model{}, optim::AdamW{}, single, 5};
    auto batches = data::DataLoader{data::InMemoryDataset{random_texts(samples + 1, 1)},
                                    data::ShuffledSampler{.seed = 1},
                                    data::PadCollate{},
                                    {.batch_size = 8}};
    trainer.fit(batches, train::NoEvaluation{}, o);
  });
  fit(single, {.epochs = 2, .max_steps = 7, .checkpoints = {.folder = folder / "later"}});
  refused(
      "was saved at epoch 1, position 4, but step 7 does not begin there with this loader's options; use the tail of "
      "the "
      "earlier run",
      [&](FitOptions o) {
        Trainer trainer{Model{}, optim::AdamW{}, single, 5};
        auto batches = data::DataLoader{data::InMemoryDataset{random_texts(samples, 1)},
                                        data::ShuffledSampler{.seed = 1},
                                        data::PadCollate{},
                                        {.batch_size = 4, .tail = data::Tail::drop}};
        o.checkpoints.resume = step_file(folder / "later", 7);
        trainer.fit(batches, train::NoEvaluation{}, o);
      });
  refused("has shape", [&](FitOptions const& o) {
    Trainer trainer{Model{16}, optim::AdamW{}, single, 5};
    auto batches = loader(4);
    trainer.fit(batches, train::NoEvaluation{}, o);
  });
  auto const path = folder / "parameters.safetensors";
  Trainer trainer{Model{}, optim::AdamW{}, single, 5};
  train::save_parameters(path, trainer.layout(), trainer.values(), {}, trainer.buffers());
  CHECK_THROWS_WITH_AS(fit(single, {.checkpoints = {.resume = path}}),
                       doctest::Contains("holds parameters without the state of training"), DataError);
  CHECK_THROWS_WITH_AS(fit(single, {.checkpoints = {.resume = folder / "none"}}),
                       doctest::Contains("none: cannot be opened for reading: No such file or directory"), DataError);
}

TEST_CASE("progress is read as written, and other texts are refused") {
  train::Progress const was{7,
                            8,
                            4,
                            ~std::uint64_t{0},
                            {0.1, 3},
                            1.5,
                            {2, 4},
                            {{4, 1, 9, 0.25, {{"accuracy", 0.5}, {"f1", std::nan("")}}, 0.5, true}},
                            {1, 8, 23, "abc"},
                            optim::LossScaler::State{0x1p64f, 5, 2},
                            "a machine\n0 1 ff\n",
                            {20, 3},
                            "AdamW",
                            {"kl", "adversarial"}};
  auto const is = train::Progress::from_json(was.to_json(), "x");
  CHECK(is.to_json() == was.to_json());
  CHECK(is.seed == was.seed);
  CHECK(is.reproducible == 4);
  CHECK(is.epoch_loss.sum == 0.1);
  REQUIRE(is.evaluations.size() == 1);
  CHECK(is.evaluations[0].metrics[0] == was.evaluations[0].metrics[0]);
  CHECK(std::isnan(is.evaluations[0].metrics[1].second));
  CHECK(is.data == was.data);
  CHECK(is.loss_scale == was.loss_scale);
  CHECK(is.gemm_algorithms == was.gemm_algorithms);
  CHECK(is.before.steps == 20);
  CHECK(is.before.epochs == 3);
  CHECK(is.optimizer == "AdamW");
  CHECK(is.loss_parts == was.loss_parts);
  CHECK_THROWS_WITH_AS(static_cast<void>(train::Progress::from_json(R"({"version":2})", "x")),
                       doctest::Contains("x: the state of training has version 2"), DataError);
  CHECK_THROWS_AS(static_cast<void>(train::Progress::from_json("{}", "x")), DataError);
}

TEST_CASE("large metrics are saved of the last and the best evaluation, and the judge's value of all") {
  train::EvaluationReport report{.samples = 9, .metrics = {{"accuracy", 0.5}}};
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 64; ++k)
      report.metrics.emplace_back("confusion." + std::to_string(i) + "." + std::to_string(k), i * k);
  report.metrics.emplace_back("recall.0", 0.25);
  train::Progress all{.steps = 20, .effective_batch_size = 8, .data = {1, 8, 23, "abc"}};
  for (report.step = 1; report.step <= 20; ++report.step) {
    report.best = report.step < 6;
    all.evaluations.push_back(report);
  }
  auto const saved = train::Progress::from_json(all.to_json("confusion.3.2"), "x");
  REQUIRE(saved.evaluations.size() == 20);
  for (auto const& each : saved.evaluations) {
    CAPTURE(each.step);
    if (each.step == 5 || each.step == 20) {
      CHECK(each.metrics == report.metrics);
    } else {
      CHECK(each.metrics == decltype(each.metrics){{"accuracy", 0.5}, {"confusion.3.2", 6}, {"recall.0", 0.25}});
    }
  }
  CHECK(saved.to_json("confusion.3.2") == all.to_json("confusion.3.2"));

  for (auto& [name, value] : all.evaluations.back().metrics) name = "all." + name;
  while (std::ssize(all.evaluations.back().metrics) <= train::Progress::max_values)
    all.evaluations.back().metrics.emplace_back("all." + std::to_string(all.evaluations.back().metrics.size()), 0.0);
  CHECK(train::Progress::from_json(all.to_json(), "x").evaluations.back().metrics.empty());
}

TEST_CASE("a checkpoint with all values of each evaluation, as earlier versions wrote it, is read") {
  std::string text = train::Progress{.steps = 2, .effective_batch_size = 8, .data = {1, 8, 23, "abc"}}.to_json();
  std::string metrics;
  for (int i = 0; i < 25; ++i) metrics += (i > 0 ? "," : "") + ("\"confusion." + std::to_string(i) + "\":1.0");
  std::string const empty = "\"evaluations\":[";
  REQUIRE(text.find(empty) != std::string::npos);
  text.insert(text.find(empty) + empty.size(),
              R"({"step":1,"epoch":0,"samples":9,"seconds":1.0,"best":true,"loss":0.5,"metrics":{)" + metrics + "}}");
  CHECK(train::Progress::from_json(text, "x").evaluations.at(0).metrics.size() == 25);
}

TEST_CASE("a missing part of a file is named") {
  lockstep_test::TemporaryFolder const folder;
  fit<nn::InFloat16<Model>>(parallel::SingleDevice{.threads = 1},
                            {.max_steps = 2, .checkpoints = {.folder = folder / "saved"}});
  auto const file = step_file(folder / "saved", 2), whole = lockstep_test::read_file(file);
  for (std::string const name : {"good_steps", "dtype", "loss_weight"}) {
    auto damaged = whole;
    REQUIRE(damaged.find(name) != std::string::npos);
    damaged[damaged.find(name)] = '_';
    lockstep_test::write_file(file, damaged);
    CHECK_THROWS_WITH_AS(
        fit<nn::InFloat16<Model>>(parallel::SingleDevice{.threads = 1}, {.checkpoints = {.resume = file}}),
        doctest::Contains((file + ": json: there is no member \"" + name + "\"").c_str()), DataError);
  }
}

TEST_CASE("impossible progress is refused with file, name and value") {
  train::Progress const sound{7, 8, 4, 5, {0.1, 3}, 1.5, {2, 4}, {{4, 1, 9, 0.25, {}, 0.5, true}}, {1, 8, 23, "abc"}};
  auto const refused = [&](void (*damage)(train::Progress&), std::string const& sentence) {
    auto damaged = sound;
    damage(damaged);
    CHECK_THROWS_WITH_AS(static_cast<void>(train::Progress::from_json(damaged.to_json(), "a.safetensors")),
                         doctest::Contains(("a.safetensors: in the state of training " + sentence).c_str()), DataError);
  };
  refused([](train::Progress& p) { p.steps = -1; }, "steps is -1");
  refused([](train::Progress& p) { p.steps = Index{1} << 60; }, "steps is 1152921504606846976");
  refused([](train::Progress& p) { p.effective_batch_size = 0; }, "effective_batch_size is 0");
  refused([](train::Progress& p) { p.reproducible = -4; }, "reproducible is -4");
  refused([](train::Progress& p) { p.before = {Index{1} << 60, 1}; }, "steps_before is 1152921504606846976");
  refused([](train::Progress& p) { p.before = {9, -1}; }, "epochs_before is -1");
  refused([](train::Progress& p) { p.epoch_loss.weight = -1; }, "loss_weight is -1");
  refused([](train::Progress& p) { p.seconds = -0.5; }, "seconds is -0.5");
  refused([](train::Progress& p) { p.resumed_at = {4, 2}; }, "resumed_at is 2");
  refused([](train::Progress& p) { p.resumed_at = {8}; }, "resumed_at is 8");
  refused([](train::Progress& p) { p.loss_scale = {0.5f, 0, 0}; }, "loss_scale is 0.5");
  refused([](train::Progress& p) { p.loss_scale = {2, 8, 0}; }, "good_steps is 8");
  refused([](train::Progress& p) { p.loss_scale = {2, 0, -1}; }, "skipped_steps is -1");
  refused([](train::Progress& p) { p.evaluations[0].step = 9; }, "an evaluation's step is 9");
  refused([](train::Progress& p) { p.evaluations[0].epoch = -1; }, "an evaluation's epoch is -1");
  refused([](train::Progress& p) { p.loss_scale = {65537, 0, 0}; }, "loss_scale is 65537");
  auto scaled = sound;
  scaled.loss_scale = {2, 3, 1};
  auto const edited = [&](std::string const& from, std::string const& to, std::string const& sentence) {
    CAPTURE(to);
    auto text = scaled.to_json();
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    CHECK_THROWS_WITH_AS(static_cast<void>(train::Progress::from_json(text, "x")), doctest::Contains(sentence.c_str()),
                         DataError);
  };
  edited("\"seed\":\"5\"", "\"seed\":\"x\"", "seed is x");
  edited("\"loss_scale\":2.0", "\"loss_scale\":0", "loss_scale is 0");  // 0 would mean no scale
  edited("\"loss_scale\":2.0", "\"loss_scale\":1e300", "loss_scale is 1e+300");
  // not 3, although it has its bits
  edited("\"good_steps\":3", "\"good_steps\":4294967299", "good_steps is 4294967299");
  edited("\"reproducible\":4", "\"reproducible\":4294967300", "reproducible is 4294967300");
  edited(R"(\"position\":8)", R"(\"position\":80)", "x: the loader's state: epoch 1, position 80 of 23");
}

TEST_CASE("a run that ends within an epoch reports the loss of the finished part, and resumes with it") {
  lockstep_test::TemporaryFolder const folder;
  auto const single = [](FitOptions const& o) { return fit(parallel::SingleDevice{.threads = 1}, o).record; };
  auto const five = single({.epochs = 4, .max_steps = 5, .accumulation = 2});
  auto const four = single({.epochs = 4, .max_steps = 4, .accumulation = 2, .checkpoints = {.folder = folder / "a"}});
  CHECK(four.train_loss > 0);
  CHECK(four.train_loss != five.train_loss);
  CHECK(single({.epochs = 4,
                .max_steps = 5,
                .accumulation = 2,
                .checkpoints = {.resume = train::newest_checkpoint(folder / "a")}})
            .train_loss == five.train_loss);
  CHECK(single({.epochs = 4, .max_steps = 1, .accumulation = 2}).train_loss > 0);
}

TEST_CASE("a run does not resume into a folder with another run's checkpoints") {
  lockstep_test::TemporaryFolder const folder;
  auto const run = [&](std::string const& to, std::string const& from) {
    fit(parallel::SingleDevice{.threads = 1},
        {.max_steps = from.empty() ? 2 : 3, .checkpoints = {.folder = folder / to, .keep = 1, .resume = from}});
  };
  run("a", ""), run("b", "");
  CHECK_THROWS_WITH_AS(
      run("b", step_file(folder / "a", 2)),
      ("fit: the checkpoint folder has checkpoints of another run, the newest " + step_file(folder / "b", 2) +
       ", but this run resumes from " + step_file(folder / "a", 2) + "; name another folder, or remove them")
          .c_str(),
      ConfigError);
  CHECK(train::checkpoint_steps(folder / "b") == std::vector<Index>{2});
  REQUIRE(::symlink("a", (folder / "link").c_str()) == 0);
  run("link", step_file(folder / "a", 2));
  run("c", step_file(folder / "a", 3));
  CHECK(train::checkpoint_steps(folder / "a") == std::vector<Index>{3});
}

TEST_CASE("a run does not resume from a checkpoint with later ones, which would be taken for its own") {
  lockstep_test::TemporaryFolder const folder;
  auto const run = [&](Index to, std::string const& from) {
    fit(parallel::SingleDevice{.threads = 1},
        {.max_steps = to, .checkpoints = {.folder = folder.path(), .every = 1, .resume = from}});
  };
  run(3, "");
  auto const second = step_file(folder.path(), 2), third = step_file(folder.path(), 3);
  CHECK_THROWS_WITH_AS(run(4, second),
                       ("fit: the checkpoint folder has later checkpoints, the newest " + third + ", than " + second +
                        ", from which this run resumes, and they would be mistaken for its own; remove them, or name "
                        "another folder")
                           .c_str(),
                       ConfigError);
  std::filesystem::remove(third);
  run(4, second);
  CHECK(train::checkpoint_steps(folder.path()) == std::vector<Index>{1, 2, 3, 4});
}

TEST_CASE("a file with a similar name is not a checkpoint") {
  lockstep_test::TemporaryFolder const folder;
  for (auto const* name : {"step_100", "step_0100", "step_-1", "step_+7", "step_7x", "step_"})
    lockstep_test::write_file(folder / name + ".safetensors", "x");
  CHECK(train::checkpoint_steps(folder.path()) == std::vector<Index>{100});
  train::remove_old_checkpoints(folder.path(), 100, 1);
  CHECK(std::filesystem::exists(step_file(folder.path(), 100)));
}

TEST_CASE("a run that diverges keeps a checkpoint from which it can resume, also if it keeps only one") {
  for (double const rate : {3e38, 1e37, 1e30, 1e25}) {  // infinite parameters, or finite ones that are too large
    CAPTURE(rate);
    lockstep_test::TemporaryFolder const folder;
    auto const run = [&](Index to, double learning_rate) {
      auto const options = FitOptions{
          .epochs = 4,
          .max_steps = to,
          .checkpoints = {
              .folder = folder / "run", .every = 1, .keep = 1, .resume = train::newest_checkpoint(folder / "run")}};
      return fit<Model, parallel::SingleDevice, optim::SGD>({.threads = 1}, options, 4,
                                                            {.learning_rate = learning_rate});
    };
    run(2, 1e-2);
    CHECK(train::checkpoint_steps(folder / "run") == std::vector<Index>{2});
    CHECK_THROWS_WITH_AS(run(8, rate), doctest::Contains(rate < 3e38 ? "" : "; it is neither evaluated nor saved"),
                         Error);
    CHECK(std::filesystem::exists(train::newest_checkpoint(folder / "run")));
    for (auto const& file : std::filesystem::directory_iterator(folder / "run"))
      CHECK(file.path().extension() == ".safetensors");  // nothing is left of a save that found inf
    run(10, 1e-2);
    CHECK(train::checkpoint_steps(folder / "run") == std::vector<Index>{10});
  }
}

TEST_CASE("a checkpoint of parameters that are not finite is refused, by name") {
  lockstep_test::TemporaryFolder const folder;
  fit(parallel::SingleDevice{.threads = 1}, {.epochs = 1, .checkpoints = {.folder = folder / "run"}});
  auto const path = train::newest_checkpoint(folder / "run");
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::SessionState state(layout.size(), layout.buffer_size(), optim::AdamW::states);
  auto const progress = train::load_checkpoint(path, layout, state);
  state.values()[0] = std::nanf("");
  auto const moment = [](void* of, std::size_t i) -> float const* {
    return static_cast<parallel::SessionState*>(of)->moments(i).data();
  };
  train::save_checkpoint(path, layout, state.values(), state.buffers(), {state.states(), moment, &state}, progress);
  CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1},
                           {.epochs = 2, .checkpoints = {.folder = folder / "run", .resume = path}}),
                       doctest::Contains("is nan (element 0 of"), Error);
}

TEST_CASE("metadata that cannot be saved is refused before the first step, also in a dry run") {
  lockstep_test::TemporaryFolder const folder;
  for (bool const dry : {false, true})
    for (train::Metadata const& metadata :
         {train::Metadata{{"classes", "a"}, {"classes", "b"}}, train::Metadata{{train::Progress::key, "mine"}},
          train::Metadata{{"text", "\xff"}}}) {
      FitOptions const options{
          .epochs = 1, .checkpoints = {.folder = folder / "run", .metadata = metadata}, .dry_run = dry};
      CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, options),
                           doctest::Contains("fit: checkpoints.metadata: the metadata \""), ConfigError);
    }
  CHECK(folder.entries() == 0);
}

TEST_CASE("a folder in which nothing can be written is found before the first step by a trial") {
  lockstep_test::TemporaryFolder const folder;
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit const tight{10, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  std::string said;
  try {
    train::detail::try_folder(folder / "run", 100);
  } catch (DataError const& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(said.find("ulimit -f unlimited") != std::string::npos);
  CHECK_THROWS_WITH_AS(train::detail::try_folder(folder / "run", std::size_t{1} << 62),
                       doctest::Contains("are free there, and a checkpoint has"), DataError);
  train::detail::try_folder(folder / "run", 100);
  CHECK(std::filesystem::is_empty(folder / "run"));
}

namespace {
/// Puts a file in the place of a folder at a step.
struct FolderThief final : train::Observer {
  FolderThief(std::string path, Index at) : folder(std::move(path)), step_of(at) {}
  void step(train::StepReport const& report) override {
    if (report.step != step_of) return;
    std::filesystem::rename(folder, folder + ".away");
    lockstep_test::write_file(folder, "not a folder");
  }
  std::string folder;
  Index step_of;
};
}  // namespace

TEST_CASE("a last save that fails is made in the working directory, and the message says where") {
  lockstep_test::TemporaryFolder const folder;
  auto const whole = fit(parallel::SingleDevice{.threads = 1}, {.epochs = 1});
  auto const here = std::filesystem::current_path();
  std::filesystem::create_directory(folder / "work");
  std::filesystem::current_path(folder / "work");
  FolderThief thief(folder / "run", 6);
  std::string said;
  try {
    fit(parallel::SingleDevice{.threads = 1},
        {.epochs = 1, .checkpoints = {.folder = folder / "run"}, .observers = {&thief}});
  } catch (DataError const& error) {
    said = error.what();
  }
  std::filesystem::current_path(here);
  auto const place = folder / ("work/lockstep-" + std::to_string(::getpid()) + "-step_6.safetensors");
  CHECK_MESSAGE(
      said.find("the last checkpoint is " + std::filesystem::canonical(folder.path()).string()) != std::string::npos,
      said);
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::SessionState state(layout.size(), layout.buffer_size(), optim::AdamW::states);
  CHECK(train::load_checkpoint(place, layout, state).steps == 6);
  CHECK(std::equal(whole.values.begin(), whole.values.end(), state.values().begin()));
}

namespace {
struct BadMetric {
  double total = 0;
  void add(auto const&, auto const&) { throw DataError("sample 3 is damaged"); }
  std::span<double> totals() { return {&total, 1}; }
  double value() const { return total; }
  static constexpr char const* name() { return "bad"; }
};
}  // namespace

TEST_CASE("an evaluation or an observer that throws after the last step does not lose the run") {
  struct Thrower final : train::Observer {
    void step(train::StepReport const& report) override {
      if (report.step == 6) throw DataError("the log's disk is full");
    }
  } thrower;
  for (bool const by_observer : {false, true}) {
    lockstep_test::TemporaryFolder const folder;
    Trainer trainer{Model{}, optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}, 5};
    auto batches = loader(4), held_out = loader(4);
    FitOptions options{.epochs = 1, .checkpoints = {.folder = folder / "run"}};
    if (by_observer) {
      options.observers = {&thrower};
      CHECK_THROWS_WITH_AS(trainer.fit(batches, options), "the log's disk is full", DataError);
    } else {
      CHECK_THROWS_WITH_AS(trainer.fit(batches, train::Evaluation{held_out, BadMetric{}}, options),
                           doctest::Contains("sample 3 is damaged"), DataError);
    }
    CHECK(train::checkpoint_steps(folder / "run") == std::vector<Index>{6});
  }
}

namespace {
/// Counts samples, and throws if `fails` is set.
struct FlakyMetric {
  bool const* fails;
  double total = 0;
  void add(auto const&, auto const& batch) {
    if (*fails) throw DataError("the file server is away");
    total += static_cast<double>(batch.rows());
  }
  std::span<double> totals() { return {&total, 1}; }
  double value() const { return total; }
  static constexpr char const* name() { return "flaky"; }
};
}  // namespace

TEST_CASE("a resumed run makes the evaluation that had failed, and ends like an uninterrupted one") {
  for (Index const stopped_at : {0, 3}) {  // the evaluation after the last step fails, or a stop omits one
    CAPTURE(stopped_at);
    struct Stopper final : train::Observer {
      void step(train::StepReport const& report) override {
        if (report.step == at) stop.request_stop();
        if (report.step == report.steps) *fails = true;
      }
      std::stop_source stop = {};
      Index at = 0;
      bool* fails = nullptr;
    };
    lockstep_test::TemporaryFolder const folder;
    bool fails = false;
    auto const run = [&](Stopper* stopper, train::Checkpoints const& checkpoints) {
      Trainer trainer{Model{}, optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}, 5};
      auto batches = loader(4), held_out = loader(4);
      FitOptions options{
          .epochs = 2, .accumulation = 2, .plateau = {.patience = 1, .factor = 0.5}, .checkpoints = checkpoints};
      if (stopper) options.observers = {stopper}, options.stop = stopper->stop.get_token();
      auto record = trainer.fit(batches, train::Evaluation{held_out, FlakyMetric{&fails}}, options);
      return Outcome{{trainer.values().begin(), trainer.values().end()}, {}, std::move(record)};
    };
    auto const whole = run(nullptr, {});
    Stopper stopper;
    stopper.at = stopped_at - 1;  // the next step has the request
    stopper.fails = &fails;
    if (stopped_at > 0)
      CHECK(run(&stopper, {.folder = folder / "run"}).record.evaluations.empty());
    else
      CHECK_THROWS_WITH_AS(run(&stopper, {.folder = folder / "run"}), doctest::Contains("the file server is away"),
                           DataError);
    fails = false;
    auto const newest = train::newest_checkpoint(folder / "run");
    CHECK(newest == step_file(folder / "run", stopped_at == 0 ? 6 : 3));
    auto const rest = run(nullptr, {.folder = folder / "run", .resume = newest});
    CHECK(rest.values == whole.values);
    REQUIRE(rest.record.evaluations.size() == whole.record.evaluations.size());
    for (std::size_t i = 0; i < whole.record.evaluations.size(); ++i) {
      CHECK(rest.record.evaluations[i].step == whole.record.evaluations[i].step);
      CHECK(rest.record.evaluations[i].loss == whole.record.evaluations[i].loss);
      CHECK(rest.record.evaluations[i].metrics == whole.record.evaluations[i].metrics);
    }
    CHECK(rest.record.session.unused_parameters.empty());
    CHECK_FALSE(rest.record.was_complete);
    auto const complete = run(nullptr, {.resume = train::newest_checkpoint(folder / "run")});
    CHECK(complete.record.evaluations.size() == whole.record.evaluations.size());  // and it was saved
    CHECK(complete.record.was_complete);                                           // nothing was left to do
    CHECK(complete.record.ranks.empty());
  }
}

TEST_CASE(
    "a stop in an evaluation ends it on all ranks; the run is saved, and begins with the evaluation when resumed") {
  struct Requester final : train::Observer {
    void evaluating(train::EvaluationProgress const& progress) override {
      done = progress.done;
      if (progress.done == 2 && begun == at) stop.request_stop();
      begun += progress.done == progress.steps;
    }
    std::stop_source stop = {};
    Index at = 0, begun = 0, done = 0;  // evaluation of the request, number of this one, batches of the last one
  };
  lockstep_test::TemporaryFolder const folder;
  for (int const ranks : {1, 2})
    for (Index const at : {0, 1}) {  // evaluations after steps 3 and 6, which is the last
      CAPTURE(ranks);
      CAPTURE(at);
      auto const own_folder = folder / (std::to_string(ranks) + std::to_string(at));
      auto const run = [&](bool requests, train::Checkpoints const& checkpoints) {
        std::vector<Outcome> all(static_cast<std::size_t>(ranks));
        launch::run({.threads = ranks}, [&](launch::World& world) {
          Requester requester;
          requester.at = at;
          Trainer trainer{Model{}, optim::AdamW{.learning_rate = 1e-2},
                          parallel::DistributedDataParallel{comm::connect(world), 256, 1}, 5};
          auto batches = loader(4 / ranks), held_out = loader(4 / ranks);
          FitOptions options{.epochs = 2, .accumulation = 2, .checkpoints = checkpoints};
          if (world.rank > 0) options.checkpoints = {};
          bool const asks = requests && world.rank == ranks - 1;
          if (asks) options.observers = {&requester}, options.stop = requester.stop.get_token();
          auto record = trainer.fit(batches, train::Evaluation{held_out, train::Accuracy{&Text::label}}, options);
          if (asks) CHECK(requester.done == 2);
          all[static_cast<std::size_t>(world.rank)] = {
              {trainer.values().begin(), trainer.values().end()}, {}, std::move(record)};
          return 0;
        });
        for (auto const& each : all) CHECK(each.record.stopped == requests);
        return all[0];
      };
      auto const whole = run(false, {}), part = run(true, {.folder = own_folder});
      CHECK(part.record.steps == 3 * (at + 1));
      CHECK(part.record.evaluations.size() == static_cast<std::size_t>(at));
      auto const newest = train::newest_checkpoint(own_folder);
      CHECK(newest == step_file(own_folder, 3 * (at + 1)));
      auto const rest = run(false, {.folder = own_folder, .resume = newest});
      CHECK(rest.values == whole.values);
      REQUIRE(rest.record.evaluations.size() == 2);
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(rest.record.evaluations[i].step == whole.record.evaluations[i].step);
        CHECK(rest.record.evaluations[i].loss == whole.record.evaluations[i].loss);
        CHECK(rest.record.evaluations[i].metrics == whole.record.evaluations[i].metrics);
      }
    }
}

TEST_CASE("a slow rank's evaluation ends by the request of a rank that has no more to do, and does not stall it") {
  struct Slow final : train::Observer {
    void evaluating(train::EvaluationProgress const& progress) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = progress.done;
      if (stop && done == 10) stop->request_stop();
    }
    std::stop_source* stop = nullptr;
    Index done = 0;
  };
  constexpr Index steps = 300;
  for (bool const requests : {true, false}) {
    CAPTURE(requests);
    lockstep_test::TemporaryFolder const folder;
    std::stop_source of_last;
    Slow slow;
    if (requests) slow.stop = &of_last;
    std::vector<train::RunRecord> all(2);
    launch::Options ranks;
    ranks.threads = 2;
    ranks.limits.stall_seconds = 5;  // the slow rank's evaluation takes 6
    launch::run(ranks, [&](launch::World& world) {
      Trainer trainer{Model{}, optim::AdamW{}, parallel::DistributedDataParallel{comm::connect(world), 256, 1}, 5};
      auto batches = loader(12);
      auto held_out = data::DataLoader{data::InMemoryDataset{random_texts(2 * steps, 2)},
                                       data::SequentialSampler{},
                                       data::PadCollate{},
                                       {.batch_size = 1, .workers = 0}};
      FitOptions options{.epochs = 1};
      if (world.rank == 0) options.checkpoints = {.folder = folder / "run"}, options.observers = {&slow};
      if (world.rank == 1) options.stop = of_last.get_token();
      all[static_cast<std::size_t>(world.rank)] = trainer.fit(batches, train::Evaluation{held_out}, options);
      return 0;
    });
    for (auto const& each : all) {
      CHECK(each.steps == 1);
      CHECK(each.stopped == requests);
      CHECK(each.evaluations.size() == (requests ? 0 : 1));
    }
    CHECK(slow.done >= 10);
    CHECK((slow.done == steps) == !requests);
    CHECK(train::newest_checkpoint(folder / "run") == step_file(folder / "run", 1));
  }
}

TEST_CASE("an error after a stop request in an evaluation does not lose the run; without a request it ends it") {
  struct Thrower final : train::Observer {
    void evaluating(train::EvaluationProgress const&) override {
      if (requests) stop.request_stop();
      throw DataError("the display is gone");
    }
    std::stop_source stop = {};
    bool requests = true;
  };
  for (bool const requests : {true, false}) {
    lockstep_test::TemporaryFolder const folder;
    Thrower thrower;
    thrower.requests = requests;
    FitOptions options{.epochs = 2, .accumulation = 2, .checkpoints = {.folder = folder / "run"}};
    options.stop = thrower.stop.get_token();
    options.observers = {&thrower};
    CHECK_THROWS_AS(fit(parallel::SingleDevice{.threads = 1}, options), DataError);
    CHECK(train::newest_checkpoint(folder / "run") == (requests ? step_file(folder / "run", 3) : ""));
  }
}

TEST_CASE("a resumed run whose first evaluation is ended by a stop, too, is not complete") {
  lockstep_test::TemporaryFolder const folder;
  auto const run = [&](bool stops, std::string const& resume) {
    std::stop_source source;
    if (stops) source.request_stop();
    FitOptions options{.epochs = 1, .accumulation = 2, .checkpoints = {.folder = folder / "run", .resume = resume}};
    options.stop = source.get_token();
    return fit(parallel::SingleDevice{.threads = 1}, options, 24).record;
  };
  auto const first = run(true, "");  // one step, which has the request
  CHECK(first.stopped);
  CHECK(first.steps == 1);
  auto const newest = train::newest_checkpoint(folder / "run");
  auto const again = run(true, newest);
  CHECK(again.stopped);
  CHECK(again.evaluations.empty());
  auto const rest = run(false, newest);
  CHECK_FALSE(rest.stopped);
  CHECK(rest.evaluations.size() == 1);
}
