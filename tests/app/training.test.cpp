// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/training.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>

#include "../temporary_folder.hpp"

using namespace lockstep;

namespace {

struct Point {
  float x;
  float y;
};

// y = slope x, with a layer defined here: loss (slope x - y)^2.
class Line {
 public:
  void visit(auto&& each) { each("slope", slope_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = batch[&Point::x].values, y = batch[&Point::y].values;
    auto const slope = context.template value<1>(slope_)(0);
    auto error = context.template variable<1>({batch.rows()});
    nn::LossOf<Context> loss{0, static_cast<double>(batch.rows())};
    for (Index i = 0; i < batch.rows(); ++i) {
      error.value(i) = slope * x(i) - y(i);
      loss.sum += error.value(i) * error.value(i);
    }
    static_cast<void>(context.gradient(error));  // no other layer requests it, and without it the closure is skipped
    context.on_backward(error, std::tie(slope_), [this, x, error](Context& c) {
      typename Context::Scalar sum = 0;
      for (Index i = 0; i < x.size(); ++i) sum += 2 * error.value(i) * x(i);
      auto const target = c.gradient(slope_);
      *target.data = target.write == Write::add ? *target.data + sum : sum;
    });
    return loss;
  }

 private:
  nn::Parameter slope_{{1}, nn::Initializer::constant(0)};
};

/// Counts the element types of activations.
struct Kinds {
  int fp32 = 0, bf16 = 0, fp16 = 0;
};
Kinds kinds;

/// A library layer, so that it runs in any precision.
class Affine {
 public:
  void visit(auto&& each) { each("map", map_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    using Scalar = typename Context::Scalar;
    ++(std::is_same_v<Scalar, bfloat16> ? kinds.bf16 : std::is_same_v<Scalar, float16> ? kinds.fp16 : kinds.fp32);
    auto const x = context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return nn::mean_squared_error(context, map_.forward(context, x), batch[&Point::y]);
  }

 private:
  nn::Linear map_{1, 1};
};
struct OptionsWithPrecision : app::Options {
  app::Precision precision = app::Precision::fp32;
};

auto points(int count) {
  std::vector<Point> all;
  for (int i = 0; i < count; ++i) all.push_back({static_cast<float>(i % 5 + 1), static_cast<float>(3 * (i % 5 + 1))});
  return data::InMemoryDataset(all);
}

}  // namespace

TEST_CASE("--parallel changes only the policy's type") {
  app::Options options;
  options.threads = 2;
  launch::World world;
  auto const shards = [&] {
    return app::Training(options, world).with_policy([&](auto policy) {
      CHECK(std::string(policy.name()) == app::name(options.parallel));
      CHECK(policy.threads_each() == 2);
      return policy.all_shards();
    });
  };
  CHECK(shards() == 1);
  options.parallel = app::Parallel::dp;
  options.devices = 3;
  CHECK(shards() == 3);
  options.parallel = app::Parallel::ddp;
  options.devices = 1;
  CHECK(shards() == 1);
}

TEST_CASE("steps, warm-up and decay are counted in optimizer steps") {
  app::Options options;
  options.devices = 2;
  options.parallel = app::Parallel::dp;
  options.batch_size = 4;
  options.grad_accum_steps = 2;
  options.epochs = 3;
  options.warmup_epochs = 0.5;
  options.lr_schedule = optim::Schedule::Kind::linear;
  options.seed = 7;
  launch::World world;
  app::Training const training(options, world);
  CHECK(training.loader_options().seed == 7);  // seed of augmentation
  data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  auto fit = training.fit_options(loader);  // ceil(100 / 8) = 13 micro-steps, ceil(13 / 2) = 7 steps
  CHECK(fit.epochs == 3);
  CHECK(fit.accumulation == 2);
  CHECK(fit.schedule.total_steps == 21);
  CHECK(fit.schedule.warmup_steps == 4);
  CHECK(fit.schedule.kind == optim::Schedule::Kind::linear);
  CHECK(fit.equal_on_all_ranks.empty());
  CHECK_FALSE(fit.autotune_gemm);
  options.warmup_steps = 9;  // takes precedence over the epochs
  options.lr_min_factor = 0.1;
  fit = training.fit_options(loader);
  CHECK(fit.schedule.warmup_steps == 9);
  CHECK(fit.schedule.min_factor == 0.1);
  options.warmup_steps = 0;
  options.equal_on_all_ranks = {{"--width", "32"}};
  options.max_steps = 2;
  options.autotune_gemm = true;
  options.shapes_ahead = 5;
  fit = training.fit_options(loader);
  CHECK(fit.max_steps == 2);
  CHECK(fit.schedule.total_steps == 2);
  CHECK(fit.schedule.warmup_steps == 2);
  CHECK(fit.equal_on_all_ranks == options.equal_on_all_ranks);
  CHECK(fit.autotune_gemm);
  CHECK(fit.shapes_ahead == 5);
}

namespace {
/// Returns the output of a run with a hundred points.
template <class Sampler>
std::string output_of(app::Options const& options, Sampler const& sampler, train::Observer* observer = nullptr,
                      launch::World world = {}) {
  lockstep_test::TemporaryFolder const folder;
  std::fflush(stdout);
  auto const before = ::dup(1);
  CHECK(std::freopen((folder / "out").c_str(), "w", stdout) != nullptr);
  app::Training training(options, world);
  if (observer) training.observe(*observer);
  auto loader_options = training.loader_options();
  if constexpr (!std::is_same_v<Sampler, data::ShuffledSampler>) loader_options.batch_size = 1;
  data::DataLoader loader(points(100), sampler, data::PadCollate{}, loader_options);
  data::DataLoader others(points(100), sampler, data::PadCollate{}, loader_options);
  training.fit(Line{}, optim::SGD{}, loader, train::Evaluation{others});
  std::fflush(stdout);
  ::dup2(before, 1), ::close(before);
  return lockstep_test::read_file(folder / "out");
}
}  // namespace

TEST_CASE("the first line reports the largest number of samples in a batch") {
  app::Options options;
  options.dry_run = true;
  options.threads = 1;
  options.batch_size = 10;
  options.grad_accum_steps = 2;
  auto const prints_text = [&](auto const& sampler, char const* text) {
    return output_of(options, sampler).find(text) != std::string::npos;
  };
  CHECK(prints_text(data::ShuffledSampler{}, ", batch 10 per rank or device, effective batch 20, "));
  data::TokenBudgetSampler const by_tokens{.lengths = std::vector<std::int32_t>(100, 4), .tokens = 16};
  CHECK(prints_text(by_tokens, ", batch up to 4 per rank or device, effective batch up to 8, "));
}

TEST_CASE("an observer's output of an evaluation is below the program's own line") {
  struct Prints final : train::Observer {
    void evaluation(train::EvaluationReport const&) override { std::puts("of its own"); }
  } prints;
  app::Options options;
  options.threads = 1;
  options.epochs = 1;
  auto const output = output_of(options, data::ShuffledSampler{}, &prints);
  CAPTURE(output);
  CHECK(output.find("evaluation loss") < output.find("of its own"));
  CHECK(output.find("of its own") != std::string::npos);
}

TEST_CASE("a log removed during the run is reported at the end, and does not stop the run") {
  lockstep_test::TemporaryFolder const folder;
  struct Removes final : train::Observer {
    std::string path;
    void step(train::StepReport const&) override { std::filesystem::remove(path); }
  } removes;
  removes.path = folder / "metrics.csv";
  app::Options options;
  options.threads = 1;
  options.epochs = 1;
  options.save_dir = folder.path().string();
  auto const output = output_of(options, data::ShuffledSampler{}, &removes);
  CAPTURE(output);
  CHECK(output.find("note: " + removes.path + " was removed while the run wrote it, and what it held is lost\n") !=
        std::string::npos);
  CHECK(output.find("metrics.jsonl") == std::string::npos);
  CHECK(std::filesystem::exists(folder / "run.json"));
}

TEST_CASE("a warm-up longer than the run is reported before the start") {
  app::Options options;
  options.program = "training.test";
  options.batch_size = 10;
  options.dry_run = true;
  options.threads = 1;
  options.epochs = 3;
  auto const prints_text = [&](double warmup_epochs) {
    options.warmup_epochs = warmup_epochs;
    auto const output = output_of(options, data::ShuffledSampler{});
    auto const at = output.find("note: ");
    return at == std::string::npos ? "" : output.substr(at, output.find('\n', at) - at);
  };
  CHECK(prints_text(3) == "");
  CHECK(prints_text(0) == "");
  CHECK(prints_text(0.04) == "note: --warmup-epochs 0.04 is less than half a step: there is no warm-up");
  CHECK(prints_text(3.5) ==
        "note: --warmup-epochs 3.5 would be 35 steps, but the run has 30: the learning rate rises until the last step, "
        "and never falls");
  options.warmup_steps = 31;
  CHECK(prints_text(0).starts_with("note: --warmup-steps would be 31 steps, but the run has 30: "));
  options.warmup_steps = 0;
  options.max_steps = 4;
  CHECK(prints_text(1).starts_with("note: --warmup-epochs 1 would be 10 steps, but the run has 4: "));
  options.evaluate = true;  // learns nothing
  CHECK(prints_text(1) == "");
}

namespace {
struct Weight {
  nn::Parameter weight;
  void visit(auto&& each) { each("weight", weight); }
};
}  // namespace

TEST_CASE("the doctor recommends oneDNN for float models with convolution weights") {
  lockstep_test::TemporaryFolder const folder;
  app::Options options;
  options.threads = 1;
  options.epochs = 1;
  options.batch_size = 10;
  launch::World world;
  app::Examination found;
  {
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    found.complete_steps = training.fit(Line{}, optim::SGD{}, loader);
  }
  found.complete_steps.phases.forward = 1000;  // seconds: a step does little else
  found.replayed = found.complete_steps;
  options.save_dir = folder.path().string();
  auto const misses = [&](std::vector<Index> shape, std::optional<app::Precision> precision) {
    Weight model{{std::move(shape), {}}};
    app::detail::RunOutput(options, world, precision).print_diagnosis(found, {}, nn::ParameterLayout::of(model));
    return lockstep_test::read_file(folder / "doctor.json").find("lockstep::onednn") != std::string::npos;
  };
  static_assert(!kernel::Convolution<HostSpace>::by_onednn);
  CHECK(misses({2, 3, 4}, {}));
  CHECK(misses({2, 3, 4}, app::Precision::fp32));
  CHECK_FALSE(misses({2, 12}, {}));
  CHECK_FALSE(misses({2, 3, 4}, app::Precision::bf16));
}

TEST_CASE("fit trains the model that it is given") {
  app::Options options;
  options.program = "training.test";
  options.epochs = 20;
  options.learning_rate = 0.02;
  options.threads = 1;
  options.batch_size = 10;
  launch::World world;
  for (auto parallel : {app::Parallel::single, app::Parallel::dp, app::Parallel::ddp}) {
    options.parallel = parallel;
    options.devices = parallel == app::Parallel::dp ? 2 : 1;
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    auto const record = training.fit(Line{}, optim::SGD{}, loader);
    CHECK(record.parallel == app::name(parallel));
    CHECK(record.steps == (parallel == app::Parallel::dp ? 100 : 200));
    CHECK(record.train_loss < 1e-6);
  }
}

TEST_CASE("the final callback gets the trainer after a completed run, and is not called after an interrupted one") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.epochs = 1;
  options.resume = app::Options::automatic;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "";
  std::vector<float> slopes;
  auto const fit = [&](launch::World world) {
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    training.fit(Line{}, optim::SGD{}, loader, train::NoEvaluation{}, {}, [&](auto& trainer) {
      slopes.push_back(trainer.values()[0]);
      CHECK(std::filesystem::exists(options.save_dir + "/run.json"));
    });
  };
  options.dry_run = true;
  fit({});
  options.dry_run = false;
  launch::World stopped;
  auto const request = std::make_shared<launch::StopRequest>();
  CHECK(request->handle(SIGTERM));
  stopped.stop_request = request;
  fit(stopped);
  CHECK(slopes.empty());
  fit({});
  fit({});  // it was complete
  REQUIRE(slopes.size() == 2);
  CHECK(slopes[0] != 0);
  CHECK(slopes[1] == slopes[0]);
}

TEST_CASE("final metrics of a program are in run.json, also after a run that was complete, and change nothing else") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.epochs = 1;
  options.resume = app::Options::automatic;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "";
  auto const fit = [&](bool scores) {
    launch::World world;
    app::Training training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    training.fit(Line{}, optim::SGD{}, loader, train::NoEvaluation{}, {}, [&](auto&) {
      if (!scores) return;
      training.final_metric("bleu", 1);
      training.final_metric("bleu", 12.5);
      training.final_metric("chrf", std::nan(""));
    });
    return lockstep_test::read_file(options.save_dir + "/run.json");
  };
  auto const without = fit(false), with = fit(true);
  auto const final = json::parse(with).at("final");
  CHECK(final.at("bleu").number() == 12.5);
  CHECK(final.at("chrf").is_null());
  CHECK(final.at("train_loss").number() > 0);
  CHECK(fit(true) == with);   // the run was complete, with these numbers
  CHECK(fit(false) == with);  // and is unchanged
  auto rest = json::parse(with).object();
  for (auto& [name, value] : rest)
    if (name == "final") value = json::Object(value.object().begin(), value.object().end() - 2);
  CHECK(json::Value(rest) == json::parse(without));
  CHECK(std::ranges::count(with, '\n') == std::ranges::count(without, '\n') + 2);
  std::filesystem::remove(options.save_dir + "/run.json");
  CHECK(json::parse(fit(true)).at("final").at("bleu").number() == 12.5);

  launch::World world;
  app::Training training(options, world);
  for (auto const* name : {"", "train_loss", "eval_bleu"})
    CHECK_THROWS_WITH_AS(training.final_metric(name, 1), doctest::Contains("is reserved in run.json"), ConfigError);
}

TEST_CASE("--precision chooses the stored type of activations, if a program supports it") {
  OptionsWithPrecision options;
  options.program = "training.test";
  options.learning_rate = 0.02;
  options.threads = 1;
  options.batch_size = 10;
  launch::World world;
  for (auto precision : {app::Precision::fp32, app::Precision::bf16, app::Precision::fp16}) {
    options.precision = precision;
    lockstep_test::TemporaryFolder const folder;
    options.save_dir = folder / "run";
    std::filesystem::create_directories(options.save_dir);
    kinds = {};
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    auto const record = training.fit(Affine{}, optim::SGD{}, loader);
    auto const& own = precision == app::Precision::bf16   ? kinds.bf16
                      : precision == app::Precision::fp16 ? kinds.fp16
                                                          : kinds.fp32;
    CHECK(own == 30);
    CHECK(kinds.fp32 + kinds.bf16 + kinds.fp16 == 30);
    CHECK(record.train_loss < 1);
    std::ifstream file(options.save_dir + "/run.json");
    auto const json = json::parse(std::string(std::istreambuf_iterator<char>(file), {}), "run.json");
    CHECK(json.at("precision").string() == app::name(precision));
    CHECK((json.find("loss_scale") != nullptr) == (precision == app::Precision::fp16));
  }
}

TEST_CASE("--best-by keeps the best evaluation's parameters, --patience stops early, --init-from starts from them") {
  app::Options options;
  options.program = "training.test";
  options.epochs = 9;
  options.learning_rate = 1;  // every step overshoots, so the first evaluation is the best
  options.threads = 1;
  options.batch_size = 10;
  options.max_steps = 90;
  options.patience = 2;
  options.best_by = "loss";
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "run";
  std::filesystem::create_directories(options.save_dir);
  launch::World world;
  app::Training const training(options, world);
  data::DataLoader loader(points(10), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  data::DataLoader held_out(points(10), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  auto const record = training.fit(Affine{}, optim::SGD{}, loader, train::Evaluation{held_out}, {{"of", "points"}});
  CHECK(record.evaluations.size() == 3);
  auto const best = options.save_dir + "/checkpoints/best.safetensors";
  CHECK(train::load_text(best, "of") == "points");

  app::Options again;
  again.program = "training.test";
  again.epochs = 1;
  again.learning_rate = 0;
  again.threads = 1;
  again.batch_size = 10;
  again.init_from = best;
  auto const same = app::Training(again, world).fit(Affine{}, optim::SGD{}, loader, train::Evaluation{held_out});
  CHECK(same.evaluations[0].loss == record.evaluations[0].loss);

  struct Counts : train::Observer {
    int steps = 0, evaluations = 0;
    void step(train::StepReport const&) override { ++steps; }
    void evaluation(train::EvaluationReport const&) override { ++evaluations; }
  } counts;
  app::Training partly(again, world);
  partly.observe(counts);
  std::vector<std::string> asked;
  partly.init_by([&](std::string_view name) {
    asked.emplace_back(name);
    return asked.size() == 1 ? std::string(name) : "";  // the others start as without the file
  });
  auto const other = partly.fit(Affine{}, optim::SGD{}, loader, train::Evaluation{held_out});
  CHECK(asked.size() > 1);
  CHECK(other.evaluations[0].loss != record.evaluations[0].loss);
  CHECK(counts.steps == 1);
  CHECK(counts.evaluations == 1);

  // --evaluate reads all of a file that this program saved, and only the selected part of another one.
  again.evaluate = true;
  auto const evaluated = [&](std::string const& file, std::string const& in_file) {
    again.init_from = file;
    app::Training evaluation(again, world);
    evaluation.init_by([&](std::string_view name) { return name == "map.weight" ? in_file : ""; });
    std::vector<float> values;
    evaluation.fit(Affine{}, optim::SGD{}, loader, train::Evaluation{held_out}, {}, [&](auto& trainer) {
      for (auto const& entry : trainer.layout().entries())
        values.push_back(trainer.values()[static_cast<std::size_t>(entry.offset)]);
    });
    return values;
  };
  Affine model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> saved(static_cast<std::size_t>(layout.size()));
  train::load_parameters(best, layout, saved);
  std::vector<float> all;
  for (auto const& entry : layout.entries()) all.push_back(saved[static_cast<std::size_t>(entry.offset)]);
  CHECK(evaluated(best, "map.weight") == all);
  nn::Linear part(1, 1, nn::Bias::none);
  auto const part_layout = nn::ParameterLayout::of(part);
  train::save_parameters(folder / "part.safetensors", part_layout,
                         std::vector<float>(static_cast<std::size_t>(part_layout.size()), 7));
  CHECK(evaluated(folder / "part.safetensors", "weight")[0] == 7);
}

TEST_CASE("a refusal before the first step leaves --save-dir unchanged") {
  lockstep_test::TemporaryFolder const folder;
  app::Options options;
  options.save_dir = folder / "";
  options.batch_size = 10;
  options.threads = 1;
  options.best_by = "lose";
  launch::World world;
  app::Training const training(options, world);
  data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  data::DataLoader again(points(20), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  CHECK_THROWS_WITH_AS(training.fit(Line{}, optim::SGD{}, loader, train::Evaluation{again}),
                       doctest::Contains("judged by \"lose\", which they do not measure"), ConfigError);
  CHECK(std::filesystem::is_empty(options.save_dir));
}

TEST_CASE("run.json belongs to a completed run, not to an unfinished one") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.epochs = 1;
  options.resume = app::Options::automatic;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "run";
  std::filesystem::create_directories(options.save_dir);
  auto const fit = [&](launch::World world) {
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    return training.fit(Affine{}, optim::SGD{}, loader);
  };
  CHECK(fit({}).steps == 10);
  CHECK(fit({}).steps == 10);  // it was complete, and is left unchanged
  CHECK(std::filesystem::exists(options.save_dir + "/run.json"));
  options.epochs = 2;
  launch::World stopped;
  auto const request = std::make_shared<launch::StopRequest>();
  CHECK(request->handle(SIGTERM));
  stopped.stop_request = request;
  CHECK(fit(stopped).steps == 11);
  CHECK_FALSE(std::filesystem::exists(options.save_dir + "/run.json"));
  CHECK(fit({}).steps == 20);
  CHECK(std::filesystem::exists(options.save_dir + "/run.json"));
}

TEST_CASE("restarted ranks resume from their checkpoints, and other runs from --resume") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.epochs = 1;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "run";
  std::filesystem::create_directories(options.save_dir);
  auto const resumed = [&](int restarts) {
    launch::World world;
    world.restarts = restarts;
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    return training.fit(Affine{}, optim::SGD{}, loader).resumed();
  };
  CHECK(resumed(0) == 0);
  options.epochs = 2;
  CHECK(resumed(1) == 10);
  options.epochs = 3;
  CHECK_THROWS_WITH_AS(resumed(0), doctest::Contains("but this run starts from step 0"),
                       ConfigError);  // without --resume
}

TEST_CASE("a resumed run that is stopped in its first evaluation is not reported as complete") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 100;
  options.epochs = 1;
  options.resume = app::Options::automatic;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "run";
  std::filesystem::create_directories(options.save_dir);
  auto const request = std::make_shared<launch::StopRequest>();
  CHECK(request->handle(SIGTERM));
  launch::World stopped;
  stopped.stop_request = request;
  for (auto const* const run : {"new", "resumed"}) {
    CAPTURE(run);
    auto const output = output_of(options, data::ShuffledSampler{}, nullptr, stopped);
    CAPTURE(output);
    CHECK(output.find("stopped after step 1 of 1 on request") != std::string::npos);
    CHECK(output.find("--resume auto resumes the run") != std::string::npos);
    CHECK(output.find("was complete") == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(options.save_dir + "/run.json"));
  }
  auto const output = output_of(options, data::ShuffledSampler{});
  CAPTURE(output);
  CHECK(output.find("evaluation loss") != std::string::npos);
  CHECK(output.find("was complete") == std::string::npos);
  CHECK(output.find("the run had made its last step, 1, before; the missing evaluation was made\n") !=
        std::string::npos);
  CHECK(std::filesystem::exists(options.save_dir + "/run.json"));
  CHECK(output_of(options, data::ShuffledSampler{}).find("the run was complete at step 1\n") != std::string::npos);
}

TEST_CASE("a run stopped on request writes its trace") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.max_steps = 5;  // few steps, so they are traced from the first on
  options.trace = true;
  lockstep_test::TemporaryFolder const folder;
  options.save_dir = folder / "run";
  std::filesystem::create_directories(options.save_dir);
  auto const request = std::make_shared<launch::StopRequest>();
  CHECK(request->handle(SIGTERM));
  launch::World world;
  world.stop_request = request;
  app::Training const training(options, world);
  data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
  auto const record = training.fit(Affine{}, optim::SGD{}, loader);
  CHECK(record.stopped);
  CHECK(training.stopped_by() == SIGTERM);
  CHECK(std::filesystem::exists(options.save_dir + "/checkpoints/step_1.safetensors"));
  std::ifstream file(options.save_dir + "/trace.json");
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}).find("\"step 1\"") != std::string::npos);
  CHECK(std::filesystem::exists(options.save_dir + "/layers.csv"));
}

namespace {
/// Options of a run of five steps.
app::Options five_steps() {
  app::Options options;
  options.program = "training.test";
  options.learning_rate = 0.02;
  options.threads = 1;
  options.batch_size = 10;
  options.max_steps = 5;
  return options;
}
/// Returns the loss of a run.
template <class Optimizer>
double loss_of(app::Options const& options, Optimizer const& optimizer) {
  launch::World world;
  app::Training const training(options, world);
  data::DataLoader loader(points(100), data::SequentialSampler{}, data::PadCollate{}, training.loader_options());
  return training.fit(Line{}, optimizer, loader).train_loss;
}
}  // namespace

TEST_CASE("the optimizer's flags take precedence, and the program's conflicting values are refused") {
  app::Options options = five_steps();
  auto const loss = [&](auto const& optimizer) { return loss_of(options, optimizer); };
  auto const plain = loss(optim::SGD{}), decayed = loss(optim::SGD{.weight_decay = 3});
  CHECK(plain != decayed);
  options.weight_decay = 3;  // the program's
  CHECK(loss(optim::SGD{}) == decayed);
  CHECK(loss(optim::SGD{.weight_decay = 1}) != decayed);
  options.given = {"--weight-decay"};
  CHECK(loss(optim::SGD{.weight_decay = 1}) == decayed);
  CHECK(loss(optim::SGD{.learning_rate = 0.02, .weight_decay = 3}) == decayed);
  CHECK_THROWS_WITH_AS(loss(optim::SGD{.learning_rate = 0.5}),
                       doctest::Contains("the optimizer's learning rate is 0.5, but --lr has the default"),
                       ConfigError);
  options.given = {"--lr", "--weight-decay"};
  CHECK(loss(optim::SGD{.learning_rate = 0.5}) == decayed);
}

TEST_CASE("--lr sets the first of two optimizers' rates, and the other rate keeps its ratio") {
  app::Options options = five_steps();
  auto const loss = [&](auto const& optimizer) { return loss_of(options, optimizer); };
  auto const rule = [](std::string_view, std::span<Index const> shape) { return shape.size() == 2; };
  auto const both = [&](double first, double second) {
    return optim::Partitioned{optim::SGD{.learning_rate = first}, optim::SGD{.learning_rate = second}, rule};
  };
  auto const expected = loss(optim::SGD{});
  CHECK(loss(both(0.02, 0.02)) == expected);
  CHECK_THROWS_WITH_AS(loss(both(0.5, 0.5)), doctest::Contains("the optimizer's learning rate is 0.5, but --lr has"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(loss(optim::Averaged{optim::SGD{.learning_rate = 0.5}}),
                       doctest::Contains("the optimizer's learning rate is 0.5, but --lr has"), ConfigError);
  options.given = {"--lr"};
  CHECK(loss(both(0.5, 0.5)) == expected);
  CHECK(loss(both(0.5, 1)) != expected);
  options.given = {"--lr", "--weight-decay"};
  CHECK_THROWS_WITH_AS(
      loss(both(0.5, 0.5)),
      "--weight-decay: the program's optimizer SGD and SGD has no weight decay of its own to set; leave "
      "the flag out",
      ConfigError);
}

TEST_CASE("a second fit with --save-dir is refused; without it, it is another training") {
  app::Options options;
  options.program = "training.test";
  options.threads = 1;
  options.batch_size = 10;
  options.epochs = 1;
  launch::World world;
  lockstep_test::TemporaryFolder const folder;
  for (bool const saves : {false, true}) {
    if (saves) options.save_dir = folder / "";
    options.resume = saves ? app::Options::automatic : app::Options::never;
    app::Training const training(options, world);
    data::DataLoader loader(points(100), data::ShuffledSampler{}, data::PadCollate{}, training.loader_options());
    training.fit(Affine{}, optim::SGD{}, loader);
    if (saves)
      CHECK_THROWS_WITH_AS(training.fit(Affine{}, optim::SGD{}, loader),
                           doctest::Contains("a second call, but --save-dir has the files of the first"), ConfigError);
    else
      CHECK(training.fit(Affine{}, optim::SGD{}, loader).steps == 10);
  }
}
