// SPDX-License-Identifier: Apache-2.0
// Loss weights that are learned or follow a schedule, built from existing parts as in docs/how-to/add-a-layer.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/contrastive/logit_scale.hpp>
#include <lockstep/nn/convolution/slice_channels.hpp>
#include <lockstep/nn/elementwise/elementwise.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/subtract.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "../temporary_folder.hpp"

using namespace lockstep;

namespace {

struct HalfSquare {
  [[maybe_unused]] static constexpr char const* name = "half_square";
  template <class T>
  constexpr kernel::LossAt<T> operator()(T x) const {
    return {x * x / 2, x};
  }
};
struct MinusLog {
  [[maybe_unused]] static constexpr char const* name = "minus_log";
  template <class T>
  constexpr kernel::LossAt<T> operator()(T x) const {
    return {-std::log(x), -1 / x};
  }
};
struct One {
  [[maybe_unused]] static constexpr char const* name = "one";
  template <class T>
  constexpr kernel::ActivationAt<T> operator()(T) const {
    return {1, 0};
  }
};

class GaussianLoss {
 public:
  void visit(auto&& each) { each("inverse_deviation", inverse_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, nn::VariableOf<Context, 2> prediction,
                              nn::VariableOf<Context, 2> target) const {
    auto const off = nn::subtract(context, prediction, target);
    auto const inverse = inverse_.forward(context, nn::elementwise(context, One{}, off));
    return nn::elementwise_loss(context, HalfSquare{}, nn::multiply(context, off, inverse))
        .with_auxiliary(nn::elementwise_loss(context, MinusLog{}, inverse));
  }

 private:
  nn::LogitScale inverse_{{.start = 1, .max = 1e4}};
};

struct Point {
  float x, steep, noisy;
};

class TwoTasks {
 public:
  void visit(auto&& each) { each("body", body_), each("steep", steep_), each("noisy", noisy_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    Extents<2> const one{batch.rows(), 1};
    auto const input = [&](float Point::*member) { return context.input(batch[member].values.reshape(one)); };
    auto const both = body_.forward(context, input(&Point::x));
    return steep_.forward(context, nn::slice_channels(context, both, 0, 1), input(&Point::steep))
        .with_auxiliary(noisy_.forward(context, nn::slice_channels(context, both, 1, 1), input(&Point::noisy)));
  }

 private:
  nn::Linear body_{1, 2};
  GaussianLoss steep_, noisy_;
};

/// Errors of 0.1 in one task, of 2 in the other, equally often positive and negative.
std::vector<Point> points() {
  std::vector<Point> all;
  for (int i = 0; i < 256; ++i) {
    auto const x = static_cast<float>(i / 4) / 32 - 1;
    all.push_back({x, 3 * x + (i % 2 == 0 ? 0.1f : -0.1f), -x + (i % 4 < 2 ? 2.0f : -2.0f)});
  }
  return all;
}

class Annealed {
 public:
  explicit Annealed(double passes) : passes_(passes) {}
  void visit(auto&& each) { each("passes", done_); }
  double weight(auto& context) const {
    auto const done = context.template value<1>(done_);
    auto const weight = std::min(1.0, static_cast<double>(done(0)) / passes_);
    if (context.mode() == nn::Mode::training) ++done(0);
    return weight;
  }

 private:
  double passes_;
  nn::Buffer done_{{1}, nn::Initializer::constant(0)};
};

/// The error of one output, and the error of another with a growing weight.
class Growing {
 public:
  void visit(auto&& each) { each("body", body_), each("beta", beta_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const both =
        body_.forward(context, context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1})));
    return nn::mean_squared_error(context, nn::slice_channels(context, both, 0, 1), batch[&Point::steep])
        .with_auxiliary(nn::mean_squared_error(context, nn::slice_channels(context, both, 1, 1), batch[&Point::noisy],
                                               {.factor = beta_.weight(context)}));
  }

 private:
  nn::Linear body_{1, 2};
  Annealed beta_{8};
};

auto loader(Index batch) {
  return data::DataLoader{
      data::InMemoryDataset{points()}, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = batch}};
}

}  // namespace

TEST_CASE("deviations are learned with the predictions, and weight the tasks") {
  TwoTasks model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 1, values.data());
  data::Collated const batch{data::PadCollate{}, std::vector<Point>{{0.5f, 2, 3}, {-1, 0.25f, -1}, {2, 1, 0}}};
  auto const result = nn::check_gradients(model, layout, values, batch.batch());
  CAPTURE(result.where);
  CHECK(result.ok());

  auto batches = loader(32);
  Trainer trainer{TwoTasks{}, optim::AdamW{.learning_rate = 0.05, .weight_decay = 0},
                  parallel::DataParallel{.devices = 2, .threads = 1}};
  trainer.fit(batches, {.epochs = 200, .schedule = {.kind = optim::Schedule::Kind::cosine}});
  for (auto const& entry : trainer.layout().entries()) {
    auto const factor = std::exp(static_cast<double>(trainer.values()[static_cast<std::size_t>(entry.offset)]));
    if (entry.name == "steep.inverse_deviation.logit_scale") CHECK(factor == doctest::Approx(1 / 0.1).epsilon(0.05));
    if (entry.name == "noisy.inverse_deviation.logit_scale") CHECK(factor == doctest::Approx(1 / 2.0).epsilon(0.05));
  }
}

TEST_CASE(
    "a weight that counts passes is equal under every policy, constant in evaluations, and restored from checkpoints") {
  lockstep_test::TemporaryFolder const folder;
  auto const learned = [&](auto policy, Index batch, FitOptions const& options) {
    auto batches = loader(batch), again = loader(batch);
    Trainer trainer{Growing{}, optim::SGD{.learning_rate = 0.1}, std::move(policy)};
    auto const record = trainer.fit(batches, train::Evaluation{again}, options);
    std::vector<float> out(trainer.values().begin(), trainer.values().end());
    for (auto const& report : record.evaluations) out.push_back(static_cast<float>(report.loss));
    out.push_back(trainer.buffers()[0]);
    return out;
  };
  auto const options = [&](Index steps) {
    return FitOptions{
        .epochs = 2, .max_steps = steps, .evaluate_every_steps = 2, .checkpoints = {.folder = folder / ""}};
  };
  auto const whole =
      learned(parallel::DataParallel{.devices = 2, .threads = 1}, 32, {.epochs = 2, .evaluate_every_steps = 2});
  CHECK(whole.back() == 8);  // passes of each device: evaluations count none
  launch::run({.threads = 2}, [&](launch::World& world) {
    CHECK(learned(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, 32,
                  {.epochs = 2, .evaluate_every_steps = 2}) == whole);
    return 0;
  });
  auto const half = learned(parallel::DataParallel{.devices = 2, .threads = 1}, 32, options(4));
  CHECK(half.back() == 4);
  auto resumed = options(8);
  resumed.checkpoints.resume = folder / "step_4.safetensors";
  CHECK(learned(parallel::DataParallel{.devices = 2, .threads = 1}, 32, resumed) == whole);
}
