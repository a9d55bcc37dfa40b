// SPDX-License-Identifier: Apache-2.0
// Two trainers of one model, each with an optimizer for its part, as in a GAN.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/detach.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/binary_cross_entropy_with_logits.hpp>
#include <lockstep/nn/module/sequential.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/random/standard_normal.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/train/trainer/trainer.hpp>
#include <lockstep/train/trainer/trainer_state.hpp>

#include "../temporary_folder.hpp"

using namespace lockstep;

namespace {

struct Point {
  std::array<float, 2> at;
};

enum class Turn : std::uint8_t { critic, painter };

class Gan {
 public:
  explicit Gan(Turn turn) : turn_(turn) {}
  void visit(auto&& each) {
    each("painter", painter_);
    each("critic", critic_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const noise = nn::standard_normal(context, batch.positions(), 3);
    auto const painted = painter_.forward(context, noise);
    auto const loss = [&](auto const& x, double target) {
      return nn::binary_cross_entropy_with_logits(context, critic_.forward(context, x), target);
    };
    if (turn_ == Turn::painter) return loss(painted, 1);
    return loss(context.input(batch[&Point::at].values), 0.9).with_auxiliary(loss(nn::detach(painted), 0));
  }

 private:
  Turn turn_;
  nn::Sequential<nn::Linear, nn::BatchNorm> painter_{nn::Linear{3, 2}, nn::BatchNorm{2}};
  nn::Linear critic_{2, 1};
};

optim::Adam adam(Turn turn) {
  return {.learning_rate = 0.05, .rates = [turn](std::string_view name, std::span<Index const>) {
            return name.starts_with("critic.") == (turn == Turn::critic) ? 1.0 : 0.0;
          }};
}

struct Files {
  std::string critic, painter;
};

/// Returns the parameters of both trainers after these epochs. Begins with saved states if `begin` is above 0.
template <class Policy>
std::vector<float> play(Policy one, Policy other, Index begin, Index end, Files const& files) {
  std::vector<Point> points;
  for (std::uint64_t i = 0; i < 22; ++i) points.push_back({{uniform(Philox(1), i), 2 + uniform(Philox(2), i)}});
  data::DataLoader loader{
      data::InMemoryDataset{points}, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = 3}};
  Trainer critic{Gan{Turn::critic}, adam(Turn::critic), std::move(one), 1};
  Trainer painter{Gan{Turn::painter}, adam(Turn::painter), std::move(other), 2};
  if (begin > 0) {
    train::load_state(critic, files.critic);
    train::load_state(painter, files.painter);
  } else {
    critic.copy_parameters(painter, "painter.", "painter.");
  }
  for (Index epoch = begin; epoch < end; ++epoch) {
    loader.start(critic.split(), epoch, 0, epoch + 1);
    for (Index step = 0; step < loader.steps(critic.split()); ++step) {
      auto const held = loader.next();
      critic.step(held);
      painter.copy_parameters(critic, "critic.", "critic.");
      painter.step(held);
      critic.copy_parameters(painter, "painter.", "painter.");
    }
  }
  train::save_state(critic, files.critic);
  train::save_state(painter, files.painter);
  std::vector<float> all(critic.values().begin(), critic.values().end());
  all.insert(all.end(), painter.values().begin(), painter.values().end());
  return all;
}
parallel::DataParallel devices() { return {.devices = 2, .threads = 1}; }

}  // namespace

TEST_CASE("two trainers that train each other give equal bits on devices and ranks, and after a resume") {
  lockstep_test::TemporaryFolder const folder;
  Files const files{folder / "critic.safetensors", folder / "painter.safetensors"};
  auto const whole = play(devices(), devices(), 0, 3, files);
  auto const on_ranks = [&](Index begin) {
    std::vector<float> values;
    launch::run({.threads = 2}, [&](launch::World& world) {
      auto all = comm::connect(world);
      auto const part = [&] { return parallel::DistributedDataParallel{all.split(0, world.rank), 256, 1}; };
      auto one = part(), other = part();
      auto own = play(std::move(one), std::move(other), begin, 3, files);
      if (world.rank == 0) values = std::move(own);
      return 0;
    });
    return values;
  };
  CHECK(on_ranks(0) == whole);
  CHECK(play(devices(), devices(), 0, 1, files) != whole);
  CHECK(on_ranks(1) == whole);
}
