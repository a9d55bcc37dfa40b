// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/interop/torch.cuh>

#include <doctest/doctest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/train/metrics/accuracy.hpp>

#include "interop/torch_points.hpp"
#include "launch/ranks.hpp"
#include "memory/device.hpp"
#include "temporary_folder.hpp"

#undef CHECK  // torch has its own
#define CHECK(...) DOCTEST_CHECK(__VA_ARGS__)

using namespace lockstep;
using namespace lockstep_test;
using parallel::OnCuda;

namespace {

bool has_gpu() { return lockstep_test::has_gpu("training of a torch module"); }

struct Outcome {
  std::vector<float> values, buffers;
  train::RunRecord record;
};
template <class Policy, class Model>
Outcome fit_model(Policy policy, Model own, Index batch_size, FitOptions const& options = {.epochs = 3}) {
  Trainer trainer{std::move(own), optim::AdamW{.learning_rate = 1e-2}, std::move(policy), 5};
  auto batches = loader(batch_size), held_out = loader(5, 13);
  auto record = trainer.fit(batches, train::Evaluation{held_out, train::Accuracy{&Point::inside}}, options);
  return {{trainer.values().begin(), trainer.values().end()},
          {trainer.buffers().begin(), trainer.buffers().end()},
          std::move(record)};
}
template <class Policy>
Outcome fit(Policy policy, Index batch_size, bool extras, FitOptions const& options = {.epochs = 3}) {
  return fit_model(std::move(policy), model(extras), batch_size, options);
}
/// Runs thread ranks and returns the first rank's outcome.
Outcome fit_ranks(int ranks, Index batch_size, bool extras, FitOptions const& options = {.epochs = 3}) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  launch::Options threads;
  threads.threads = ranks;
  int const code = launch::run(threads, [&](launch::World& world) {
    auto own = options;
    if (world.rank > 0) own.checkpoints = {};
    all[static_cast<std::size_t>(world.rank)] =
        fit(OnCuda{parallel::DistributedDataParallel{comm::connect(world), 256, 1}}, batch_size, extras, own);
    return 0;
  });
  CHECK(code == 0);
  for (auto const& outcome : all) CHECK(outcome.values == all[0].values);
  return all[0];
}

template <class Model>
parallel::Replica<Model, CudaSpace> replica_on_gpu(Model const& model, nn::ParameterLayout const& layout) {
  return {model, layout, {}};
}

}  // namespace

TEST_CASE("a torch module trains on a GPU as on the CPU") {
  if (!has_gpu()) return;
  auto const there = fit(OnCuda{parallel::SingleDevice{}}, 12, false);
  auto const here = fit(parallel::SingleDevice{.threads = 1}, 12, false);
  CHECK(there.record.steps == 12);
  REQUIRE(there.values.size() == here.values.size());
  // AdamW changes an element by the ratio of two moments: rounding of their terms, 12 products with 24 terms, changes
  // it by as many parts of a step of 0.01, in each of 12 steps.
  double const bound = 12 * 1e-2 * 12 * 24 * std::ldexp(1.0, -24) * 64;
  for (std::size_t i = 0; i < here.values.size(); ++i) CHECK(std::abs(there.values[i] - here.values[i]) <= bound);
  auto const &evaluated = there.record.evaluations.back(), &expected = here.record.evaluations.back();
  CHECK(evaluated.samples == 13);
  CHECK(evaluated.loss == doctest::Approx(expected.loss).epsilon(1e-4));
  CHECK(evaluated.metrics[0].second == expected.metrics[0].second);
  CHECK(evaluated.loss < there.record.evaluations.front().loss);
}

TEST_CASE("on GPUs, too, DataParallel and DistributedDataParallel are bit-identical, with dropout and BatchNorm") {
  if (!has_gpu()) return;
  auto const dp = fit(OnCuda{parallel::DataParallel{.devices = 2}}, 6, true);
  CHECK(fit(OnCuda{parallel::DataParallel{.devices = 2}}, 6, true).values == dp.values);
  auto const ddp = fit_ranks(2, 6, true);
  CHECK(ddp.values == dp.values);
  CHECK(ddp.buffers == dp.buffers);
  CHECK(ddp.record.session.buckets.size() > 1);
  CHECK(ddp.record.session.unused_parameters == std::vector<std::string>{"unused.weight", "unused.bias"});
}

TEST_CASE("replicas on GPUs draw different random numbers, in predict and in loss") {
  if (!has_gpu()) return;
  std::mutex mutex;
  std::set<float> drawn;
  auto const draw = [&](auto const& like) {
    auto const number = torch::rand({1}, like.options()).template item<float>();
    std::scoped_lock const lock(mutex);
    drawn.insert(number);
  };
  auto const drawing_predict = [&](Net& net, auto const& batch) {
    using Numbers = TensorView<float const, 2, CudaSpace>;
    CHECK(interop::tensor_of(Numbers(nullptr, {0, 3})).sizes() == torch::IntArrayRef({0, 3}));
    auto const logits = predict(net, batch);
    if (net.is_training()) draw(logits.detach());
    return logits;
  };
  auto const drawing_loss = [&](torch::Tensor const& logits, auto const& batch) {
    if (logits.requires_grad()) draw(logits.detach());
    return loss_of(logits, batch);
  };
  auto const own = interop::Torch{[] { return std::make_shared<Net>(false); }, drawing_predict, drawing_loss};
  fit_model(OnCuda{parallel::DataParallel{.devices = 2}}, own, 11, {.epochs = 2});
  // Passes: 2 epochs of 2 steps on 2 devices. Each draws twice. Passes before the first step repeat numbers.
  CHECK(drawn.size() >= 2 * 2 * 2 * 2);
}

TEST_CASE("devices without samples in a step, and Reproducible, work with a torch module on GPUs") {
  if (!has_gpu()) return;
  auto const four = [](auto policy) { return OnCuda{parallel::Reproducible{std::move(policy), 4}}; };
  auto const single = fit(four(parallel::SingleDevice{}), 4, true);  // the last step has 12 samples for 16 places
  CHECK(single.record.steps == 9);
  CHECK(fit(four(parallel::DataParallel{.devices = 2}), 4, true).values == single.values);
}

TEST_CASE("on a GPU, too, a resumed run ends with the bits of an uninterrupted one") {
  if (!has_gpu()) return;
  TemporaryFolder const folder;
  auto const whole = fit_ranks(2, 6, true);
  fit_ranks(2, 6, true, {.epochs = 3, .max_steps = 5, .checkpoints = {.folder = folder / "checkpoints"}});
  auto const rest =
      fit_ranks(2, 6, true, {.epochs = 3, .checkpoints = {.resume = folder / "checkpoints" + "/step_5.safetensors"}});
  CHECK(rest.record.resumed_at == std::vector<Index>{5});
  CHECK(rest.values == whole.values);
  CHECK(rest.buffers == whole.buffers);
}

TEST_CASE("on a GPU a loss weight may be a tensor") {
  if (!has_gpu()) return;
  auto const with_tensor = [](torch::Tensor const& logits, auto const& batch) {
    auto const loss = loss_of(logits, batch);
    return interop::TorchLoss{loss.sum, torch::ones_like(interop::tensor_of(batch[&Point::inside])).sum()};
  };
  auto const own = interop::Torch{[] { return std::make_shared<Net>(false); }, predict, with_tensor};
  CHECK(fit_model(OnCuda{parallel::SingleDevice{}}, own, 12).values ==
        fit(OnCuda{parallel::SingleDevice{}}, 12, false).values);
}

TEST_CASE("a module that was on a GPU has its learned values afterwards, and counters count") {
  if (!has_gpu()) return;
  auto const net = std::make_shared<Net>(true);
  auto const start = net->head->weight.detach().clone();
  std::vector<float> values;
  {
    Trainer trainer{interop::Torch{net, predict, loss_of}, optim::SGD{.learning_rate = 0.1},
                    OnCuda{parallel::SingleDevice{}}};
    auto batches = loader(11);
    trainer.fit(batches, {.epochs = 2});
    Net trained(true);
    interop::copy_trained(trainer, trained);
    CHECK(trained.norm->num_batches_tracked.item<std::int64_t>() == 8);
    CHECK(net->norm->num_batches_tracked.item<std::int64_t>() == 8);
    CHECK_FALSE(trained.head->weight.equal(start));
    CHECK(trained.head->weight.equal(net->head->weight.cpu()));
    values.assign(trained.head->weight.data_ptr<float>(), trained.head->weight.data_ptr<float>() + start.numel());
  }
  auto const kept = net->head->weight.cpu();
  CHECK(std::equal(values.begin(), values.end(), kept.data_ptr<float>()));
}

TEST_CASE("a module that is trained in place on a GPU gets the values of work that is still queued") {
  if (!has_gpu()) return;
  auto const net = std::make_shared<Net>(false);
  auto mine = interop::Torch{net, predict, loss_of};
  auto const layout = nn::ParameterLayout::of(mine);
  data::Collated const batch{data::PadCollate{}, points(9)};
  {
    auto replica = replica_on_gpu(mine, layout);
    std::vector<float> start(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 0, start.data());
    replica.set_values(start);
    replica.run(batch.batch(), {.key = 1});
    CHECK(net->head->weight.abs().max().item<float>() > 0);
    replica.device().zero(replica.value_data(), replica.size());
  }
  CHECK(net->head->weight.abs().max().item<float>() == 0);
}

#if defined(LOCKSTEP_CUDA_EMULATION)
TEST_CASE("torch may remember another device than the thread's current one") {
  c10::cuda::target_device = 1;
  CHECK(fit(OnCuda{parallel::SingleDevice{}}, 12, false, {.epochs = 1}).record.steps == 4);
  CHECK(c10::cuda::target_device == -1);
}
#endif
