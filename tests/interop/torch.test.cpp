// SPDX-License-Identifier: Apache-2.0
#include <lockstep/interop/torch.hpp>

#include <doctest/doctest.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/files/parameters_sha256.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include "interop/torch_points.hpp"
#include "larger_error.hpp"
#include "launch/ranks.hpp"
#include "temporary_folder.hpp"

#undef CHECK  // torch has its own
#define CHECK(...) DOCTEST_CHECK(__VA_ARGS__)

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct Outcome {
  std::vector<float> values, buffers;
  train::RunRecord record;
  std::string sha256;
};
template <class Policy>
Outcome fit(Policy policy, Index batch_size, bool extras, FitOptions const& options = {.epochs = 2}) {
  Trainer trainer{model(extras), optim::AdamW{.learning_rate = 1e-2}, std::move(policy), 5};
  auto batches = loader(batch_size), held_out = loader(5, 13);
  auto record = trainer.fit(batches, train::Evaluation{held_out, train::Accuracy{&Point::inside}}, options);
  return {{trainer.values().begin(), trainer.values().end()},
          {trainer.buffers().begin(), trainer.buffers().end()},
          std::move(record),
          train::parameters_sha256(trainer.layout(), trainer.values())};
}
/// Runs thread ranks and returns the first rank's outcome.
Outcome fit_ranks(int ranks, Index batch_size, bool extras, FitOptions const& options = {.epochs = 2}) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  launch::Options threads;
  threads.threads = ranks;
  int const code = launch::run(threads, [&](launch::World& world) {
    auto own = options;
    if (world.rank > 0) own.checkpoints = {};
    all[static_cast<std::size_t>(world.rank)] =
        fit(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, batch_size, extras, own);
    return 0;
  });
  CHECK(code == 0);
  for (auto const& outcome : all) CHECK(outcome.values == all[0].values);
  return all[0];
}
double largest_difference(std::vector<float> const& a, std::vector<float> const& b) {
  double largest = 0;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = lockstep_test::larger_error(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

/// Computes a layer without a graph, and again in backward, as activation checkpointing does.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, torch::Tensor const& x,
                               torch::nn::LinearImpl* layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = reinterpret_cast<std::int64_t>(layer);
    at::NoGradGuard const constant;
    return layer->forward(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list const& gradients) {
    auto const x = context->get_saved_variables()[0].detach().requires_grad_(true);
    auto& layer = *reinterpret_cast<torch::nn::LinearImpl*>(context->saved_data["layer"].toInt());
    at::AutoGradMode const on(true);
    layer.forward(x).backward(gradients[0]);
    return {x.grad(), torch::Tensor()};
  }
};
/// One layer, used three times between others.
struct Recurring : torch::nn::Module {
  int recomputed_uses, steps = 0;
  bool from_second_step;
  torch::nn::Linear first{register_module("first", torch::nn::Linear(2, 24))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(24, 24))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(24, 2))};

  explicit Recurring(int uses, bool later = false) : recomputed_uses(uses), from_second_step(later) {}
  torch::Tensor forward(torch::Tensor const& x) {
    auto h = torch::tanh(first(x));
    int const recomputed = from_second_step && steps++ == 0 ? 0 : recomputed_uses;
    for (int use = 0; use < 3; ++use)
      h = torch::tanh(use < recomputed ? Recomputed::apply(h, middle.get()) : middle(h));
    return head(h);
  }
};
auto recurring(int uses, bool from_second_step = false) {
  return interop::Torch{[uses, from_second_step] {
                          torch::manual_seed(1);
                          return std::make_shared<Recurring>(uses, from_second_step);
                        },
                        predict, loss_of};
}

template <class Batch>
struct WithoutPositions {
  Batch all;
  [[nodiscard]] Index rows() const { return all.rows(); }
  [[nodiscard]] auto operator[](auto member) const { return all[member]; }
};

}  // namespace

TEST_CASE("columns become tensors over their own memory, in every element type of torch") {
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  auto const tensor = interop::tensor_of(TensorView<float const, 2, HostSpace>(numbers, {2, 3}));
  CHECK(tensor.sizes() == torch::IntArrayRef({2, 3}));
  CHECK(tensor.data_ptr<float>() == numbers);
  CHECK(tensor[1][2].item<float>() == 5);
  auto const type_of = []<class T>(T) {
    T one[1] = {T{1}};
    return static_cast<int>(interop::tensor_of(TensorView<T const, 1, HostSpace>(one, {1})).scalar_type());
  };
  enum class Kind : std::int16_t {};
  CHECK(type_of(double{}) == static_cast<int>(torch::kDouble));
  CHECK(type_of(std::int8_t{}) == static_cast<int>(torch::kChar));
  CHECK(type_of(std::uint8_t{}) == static_cast<int>(torch::kByte));
  CHECK(type_of(Kind{}) == static_cast<int>(torch::kShort));
  CHECK(type_of(std::int32_t{}) == static_cast<int>(torch::kInt));
  CHECK(type_of(Index{}) == static_cast<int>(torch::kLong));
  CHECK(type_of(bool{}) == static_cast<int>(torch::kBool));
  CHECK(interop::tensor_of(TensorView<float const, 2, HostSpace>(nullptr, {0, 3})).sizes() ==
        torch::IntArrayRef({0, 3}));
}

TEST_CASE("one device trains as torch's own loop does") {
  auto const net = std::make_shared<Net>();
  torch::optim::SGD theirs(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  Trainer trainer{interop::Torch{std::make_shared<Net>(), predict, loss_of},
                  optim::SGD{.learning_rate = 0.1, .momentum = 0.9}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(8, 44, data::SequentialSampler{}), again = loader(8, 44, data::SequentialSampler{});
  trainer.fit(batches, {.epochs = 3});
  again.start({}, 0, 0, 3);
  for (Index step = 0; step < 3 * again.steps({}); ++step) {
    auto const held = again.next();
    auto const& batch = held.batches()[0];
    theirs.zero_grad();
    auto const loss = loss_of(predict(*net, batch), batch);
    (loss.sum / loss.weight).backward();
    theirs.step();
  }
  // 18 steps. In each, a gradient (below 1) of at most 8 * 24 terms is rounded, and momentum adds ten of them.
  double const bound = 18 * 10 * 0.1 * 8 * 24 * std::ldexp(1.0, -24);
  auto trained = std::make_shared<Net>();
  interop::copy_trained(trainer, *trained);
  double moved = 0;
  for (auto const& each : net->named_parameters()) {
    auto const mine = trained->named_parameters()[each.key()], start = Net().named_parameters()[each.key()];
    CHECK_MESSAGE((each.value() - mine).abs().max().item<double>() <= bound, each.key());
    moved = std::max(moved, (start - mine).abs().max().item<double>());
  }
  CHECK(moved > 1000 * bound);
}

TEST_CASE("DataParallel and DistributedDataParallel are bit-identical, and equal to one device within rounding") {
  auto const single = fit(parallel::SingleDevice{.threads = 1}, 12, false);
  CHECK(single.record.steps == 8);
  CHECK(single.record.evaluations.back().samples == 13);
  for (int const shards : {2, 3}) {
    auto const dp = fit(parallel::DataParallel{.devices = shards, .threads = 1}, 12 / shards, false);
    auto const ddp = fit_ranks(shards, 12 / shards, false);
    CHECK(dp.values == ddp.values);
    CHECK(dp.record.evaluations.back().loss == ddp.record.evaluations.back().loss);
    CHECK(ddp.record.session.buckets.size() > 1);
    // AdamW changes an element by the ratio of two moments: rounding of their terms changes it by as many parts of a
    // step.
    CHECK(largest_difference(dp.values, single.values) <= 8 * 1e-2 * 12 * 24 * std::ldexp(1.0, -24) * 64);
    CHECK(dp.record.evaluations.back().metrics[0].second == single.record.evaluations.back().metrics[0].second);
  }
}

TEST_CASE("with dropout and BatchNorm, too, bits are equal and a run repeats; other seeds give other bits") {
  auto const dp = fit(parallel::DataParallel{.devices = 2, .threads = 1}, 6, true);
  CHECK(fit(parallel::DataParallel{.devices = 2, .threads = 1}, 6, true).values == dp.values);
  auto const ddp = fit_ranks(2, 6, true);
  CHECK(ddp.values == dp.values);
  CHECK(ddp.buffers == dp.buffers);
  Trainer other{model(true), optim::AdamW{.learning_rate = 1e-2}, parallel::DataParallel{.devices = 2, .threads = 1},
                6};
  auto batches = loader(6);
  other.fit(batches, {.epochs = 2});
  CHECK(std::vector<float>(other.values().begin(), other.values().end()) != dp.values);
}

TEST_CASE("under Reproducible the bits do not depend on the number of devices, with dropout and BatchNorm, too") {
  auto const four = [](auto policy) { return parallel::Reproducible{std::move(policy), 4}; };
  auto const single = fit(four(parallel::SingleDevice{.threads = 1}), 3, true);
  auto const dp = fit(four(parallel::DataParallel{.devices = 2, .threads = 1}), 3, true);
  auto const wide = fit(four(parallel::DataParallel{.devices = 4, .threads = 1}), 3, true);
  CHECK(single.record.steps == 8);
  CHECK(dp.values == single.values);
  CHECK(wide.values == single.values);
  CHECK(dp.record.evaluations.back().loss == single.record.evaluations.back().loss);
}

TEST_CASE("rank: torch" * doctest::skip()) {
  be_rank([](launch::World& world) {
    auto const outcome = fit(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, 6, true);
    Scratch::write("rank" + std::to_string(world.rank), outcome.sha256);
    return 0;
  });
}

TEST_CASE("processes give the bits of threads") {
  Scratch const scratch;
  auto const outcome = run_processes(2, "rank: torch");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.report);
  auto const expected = fit_ranks(2, 6, true).sha256;
  CHECK(Scratch::read("rank0") == expected);
  CHECK(Scratch::read("rank1") == expected);
}

TEST_CASE("a gradient is reported as soon as backward has computed it, and exceptions propagate unchanged") {
  auto mine = model(false);
  auto const layout = nn::ParameterLayout::of(mine);
  parallel::Replica replica(mine, layout, {.threads = 1});
  std::vector<float> start(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 0, start.data());
  replica.set_values(start);
  std::fill_n(replica.gradient_data(), layout.size(), 7.0f);
  struct Heard {
    float const* last;  // gradient of hidden.weight, the last in backward
    std::vector<Index> offsets;
    bool last_was_there = false, throws = false;
  } recorder{replica.gradient_data() + layout.entries()[0].offset, {}};
  nn::ReadySink const sink{[](void* self, Index offset, Index) {
                             auto& h = *static_cast<Heard*>(self);
                             if (h.offsets.empty()) h.last_was_there = *h.last != 7;
                             h.offsets.push_back(offset);
                             if (h.throws) throw RankLost(3, "rank 3 is lost");
                           },
                           &recorder};
  data::Collated const batch{data::PadCollate{}, points(9)};
  replica.run(batch.batch(), {.key = 1}, {}, sink);
  CHECK(recorder.offsets.empty());  // the first pass counts the gradients of each parameter
  std::fill_n(replica.gradient_data(), layout.size(), 7.0f);
  replica.run(batch.batch(), {.key = 1}, {}, sink);
  CHECK(recorder.offsets.size() == 4);
  CHECK_FALSE(recorder.last_was_there);
  std::vector<float> const gradients(replica.gradient_data(), replica.gradient_data() + layout.size());
  recorder = {recorder.last, {}, false, true};
  CHECK_THROWS_WITH_AS(replica.run(batch.batch(), {.key = 1}, {}, sink), "rank 3 is lost", RankLost);
  CHECK(recorder.offsets.size() == 1);
  recorder.throws = false;
  replica.run(batch.batch(), {.key = 1}, {}, sink);
  CHECK(std::equal(gradients.begin(), gradients.end(), replica.gradient_data()));
}

TEST_CASE("a parameter with several gradients in one backward pass is reduced once, when all are there") {
  auto const fit_recurring = [](int uses) {
    std::array<std::vector<float>, 2> all;
    launch::Options threads;
    threads.threads = 2;
    launch::run(threads, [&](launch::World& world) {
      Trainer trainer{recurring(uses), optim::SGD{.learning_rate = 0.1},
                      parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
      auto batches = loader(4, 24);
      trainer.fit(batches, {.epochs = 2, .check_replicas_every = 1});
      all[static_cast<std::size_t>(world.rank)].assign(trainer.values().begin(), trainer.values().end());
      return 0;
    });
    CHECK(all[0] == all[1]);
    return all[0];
  };
  auto const expected = fit_recurring(0);
  for (int const uses : {1, 2, 3}) {
    CAPTURE(uses);
    // Six steps of 0.1 by means of eight gradients, which are sums over three uses in another order.
    CHECK(largest_difference(fit_recurring(uses), expected) <= 6 * 0.1 * 3 * 8 * 24 * std::ldexp(1.0, -24));
  }
  Trainer changing{recurring(2, true), optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(4, 24);
  CHECK_THROWS_WITH_AS(changing.fit(batches), doctest::Contains("\"middle.bias\" received a second gradient"),
                       ConfigError);
}

TEST_CASE("torch's generator is not seeded from a batch without positions") {
  data::Collated const batch{data::PadCollate{}, points(9)};
  auto const run = [&](interop::TorchRandom random) {
    auto mine = interop::Torch{std::make_shared<Net>(), predict, loss_of, random};
    auto const layout = nn::ParameterLayout::of(mine);
    parallel::Replica replica(mine, layout, {.threads = 1});
    replica.run(WithoutPositions<std::decay_t<decltype(batch.batch())>>{batch.batch()}, {.key = 1});
    return replica.read_loss().weight;
  };
  CHECK(run(interop::TorchRandom::as_is) == 9);
  CHECK_THROWS_WITH_AS(run(interop::TorchRandom::seeded), doctest::Contains("the batch has no positions()"),
                       ConfigError);
}

TEST_CASE("a loss weight may be a tensor") {
  auto const with_tensor = [](torch::Tensor const& logits, auto const& batch) {
    auto const loss = loss_of(logits, batch);
    return interop::TorchLoss{loss.sum, torch::ones({batch.rows()}, torch::kLong).sum()};
  };
  Trainer trainer{interop::Torch{[] { return std::make_shared<Net>(false); }, predict, with_tensor},
                  optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}, 5};
  auto batches = loader(12);
  trainer.fit(batches, {.epochs = 2});
  CHECK(std::vector<float>(trainer.values().begin(), trainer.values().end()) ==
        fit(parallel::SingleDevice{.threads = 1}, 12, false).values);
  Trainer wrong{interop::Torch{[] { return std::make_shared<Net>(false); }, predict,
                               [](torch::Tensor const& logits, auto const& batch) {
                                 return interop::TorchLoss{loss_of(logits, batch).sum, torch::ones({batch.rows()})};
                               }},
                optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(wrong.fit(batches), doctest::Contains("the weight of the loss has 12 elements"), ShapeError);
}

TEST_CASE("micro-batches add up to one batch, and are reduced once") {
  auto const at_once = fit_ranks(2, 6, false), in_parts = fit_ranks(2, 3, false, {.epochs = 2, .accumulation = 2});
  CHECK(in_parts.record.steps == at_once.record.steps);
  CHECK(in_parts.record.session.buckets.size() == at_once.record.session.buckets.size());
  CHECK(largest_difference(in_parts.values, at_once.values) <= 8 * 1e-2 * 12 * 24 * std::ldexp(1.0, -24) * 64);
}

TEST_CASE("unused parameters do not change, and are named") {
  auto const outcome = fit_ranks(2, 6, true);
  CHECK(outcome.record.session.unused_parameters == std::vector<std::string>{"unused.weight", "unused.bias"});
  Trainer trainer{model(true), optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(6);
  trainer.fit(batches, {.epochs = 1});
  Net before(true), after(true);
  interop::copy_trained(trainer, after);
  CHECK(after.unused->weight.equal(before.unused->weight));
  CHECK_FALSE(after.hidden->weight.equal(before.hidden->weight));
}

TEST_CASE("buffers are saved with the parameters: floats unchanged, counters as numbers") {
  Trainer trainer{model(true), optim::SGD{.learning_rate = 0}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(11, 44, data::SequentialSampler{});
  trainer.fit(batches, {.epochs = 2});
  at::set_num_threads(1);
  Net net(true), trained(true);
  auto again = loader(11, 44, data::SequentialSampler{});
  again.start({}, 0, 0, 2);
  for (int step = 0; step < 8; ++step) predict(net, again.next().batches()[0]);
  interop::copy_trained(trainer, trained);
  CHECK(trained.norm->running_mean.equal(net.norm->running_mean));
  CHECK(trained.norm->running_var.equal(net.norm->running_var));
  CHECK(trained.norm->num_batches_tracked.item<std::int64_t>() == 8);
}

TEST_CASE("parts that a module has in evaluation mode stay in it, also after an evaluation") {
  auto const check = [](auto from, char const* mean, char const* batches_seen, bool is_frozen) {
    Trainer trainer{
        interop::Torch{
            from, [](auto& module, auto const& batch) { return module.forward(interop::tensor_of(batch[&Point::at])); },
            loss_of},
        optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
    auto batches = loader(11), held_out = loader(5);
    trainer.fit(batches, train::Evaluation{held_out}, {.epochs = 2});
    int found = 0;
    for (auto const& entry : trainer.layout().buffers()) {
      auto const first = trainer.buffers()[static_cast<std::size_t>(entry.offset)];
      if (entry.name == mean && ++found) CHECK((first == 0) == is_frozen);
      if (entry.name == batches_seen && ++found) CHECK(first == (is_frozen ? 0 : 8));
    }
    CHECK(found == 2);
  };
  auto const frozen_part = [](bool all) {
    return [all] {
      auto net = std::make_shared<Net>(true);
      all ? net->eval() : net->norm->eval();
      return net;
    };
  };
  check(frozen_part(false), "norm.running_mean", "norm.num_batches_tracked", true);
  check(frozen_part(true), "norm.running_mean", "norm.num_batches_tracked", false);  // a whole module is trained
  auto const in_place = frozen_part(false)();
  for (int trainer = 0; trainer < 2; ++trainer) check(in_place, "norm.running_mean", "norm.num_batches_tracked", true);
  CHECK(in_place->is_training());
  torch::nn::BatchNorm1d norm(2);
  norm->eval();
  check(torch::nn::Sequential(norm, torch::nn::Linear(2, 2)), "0.running_mean", "0.num_batches_tracked", true);
}

TEST_CASE("a resumed run ends with the bits of an uninterrupted one") {
  auto const check = [](auto const& fit_with) {
    TemporaryFolder const folder;
    auto const whole = fit_with(FitOptions{.epochs = 3});
    fit_with({.epochs = 3, .max_steps = 5, .checkpoints = {.folder = folder / "checkpoints"}});
    auto const rest =
        fit_with({.epochs = 3, .checkpoints = {.resume = folder / "checkpoints" + "/step_5.safetensors"}});
    CHECK(rest.record.resumed_at == std::vector<Index>{5});
    CHECK(rest.values == whole.values);
    CHECK(rest.buffers == whole.buffers);
  };
  check([](FitOptions const& o) { return fit(parallel::SingleDevice{.threads = 1}, 12, true, o); });
  check([](FitOptions const& o) { return fit_ranks(2, 6, true, o); });
}

TEST_CASE("a predictor from a file predicts as the trained module") {
  TemporaryFolder const folder;
  Trainer trainer{model(true), optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(11);
  trainer.fit(batches, {.epochs = 1});
  train::save_parameters(folder / "p.safetensors", trainer.layout(), trainer.values(), {}, trainer.buffers());
  train::Predictor predictor{model(true), folder / "p.safetensors"};
  data::Collated const batch{data::PadCollate{}, points(7)};
  Net net(true);
  interop::copy_trained(trainer, net);
  net.eval();
  auto const mine = predictor.predict(batch.batch());
  CHECK(mine.tensor.equal(predict(net, batch.batch())));
  CHECK_FALSE(mine.tensor.requires_grad());
  CHECK(mine.extent(0) == 7);
}

TEST_CASE("parameters without a gradient are kept, tied ones are learned once") {
  struct Tied : torch::nn::Module {
    torch::nn::Linear first{register_module("first", torch::nn::Linear(2, 2))};
    torch::nn::Linear second{register_module("second", first)};
    Tied() { first->bias.requires_grad_(false); }
    torch::Tensor forward(torch::Tensor const& x) { return second(torch::gelu(first(x))); }
  };
  torch::manual_seed(1);
  auto const net = std::make_shared<Tied>();
  torch::optim::SGD theirs({net->first->weight}, torch::optim::SGDOptions(0.1));
  Tied trained;
  Trainer trainer{interop::Torch{[&] {
                                   torch::manual_seed(1);
                                   return std::make_shared<Tied>();
                                 },
                                 predict, loss_of},
                  optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  CHECK(trainer.layout().entries().size() == 1);
  CHECK(trainer.layout().entries()[0].name == "first.weight");
  CHECK(trainer.layout().buffers()[0].name == "first.bias");
  auto batches = loader(44, 44, data::SequentialSampler{});
  trainer.fit(batches, {.epochs = 1});
  interop::copy_trained(trainer, trained);
  data::Collated const all{data::PadCollate{}, points(44)};
  auto const loss = loss_of(predict(*net, all.batch()), all.batch());
  (loss.sum / loss.weight).backward();
  theirs.step();
  // One step of 0.1 by a mean of 44 gradients of two layers.
  CHECK((trained.second->weight - net->first->weight).abs().max().item<double>() <=
        0.1 * 2 * 44 * std::ldexp(1.0, -24));
  CHECK(trained.first->bias.equal(net->first->bias));
}

TEST_CASE("torch's thread settings and generator are unchanged after a fit") {
  at::set_num_threads(2);
  auto const before = at::detail::getDefaultCPUGenerator().get_state();
  Trainer trainer{interop::Torch{std::make_shared<Net>(true), predict, loss_of}, optim::SGD{.learning_rate = 0.1},
                  parallel::SingleDevice{.threads = 1}};
  auto const after_construction = at::detail::getDefaultCPUGenerator().get_state();
  auto batches = loader(11), held_out = loader(5);
  at::AutoGradMode const off(false);
  trainer.fit(batches, train::Evaluation{held_out}, {.epochs = 1});
  CHECK(at::get_num_threads() == 2);
  CHECK_FALSE(at::GradMode::is_enabled());
  CHECK(at::detail::getDefaultCPUGenerator().get_state().equal(after_construction));
  CHECK_FALSE(before.equal(after_construction));  // the comparison can fail
}

TEST_CASE("a module that cannot be cloned is trained in place, by one replica at a time") {
  auto const net = std::make_shared<Net>();
  auto const start = net->head->weight.detach().clone();
  interop::Torch const mine{net, predict, loss_of};
  auto batches = loader(11);
  {
    Trainer trainer{mine, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
    trainer.fit(batches, {.epochs = 1});
    CHECK(net->head->weight.data_ptr<float>() >= trainer.values().data());
    CHECK(net->head->weight.data_ptr<float>() < trainer.values().data() + trainer.values().size());
    Trainer second{mine, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
    CHECK_THROWS_WITH_AS(second.fit(batches), doctest::Contains("derive it from torch::nn::Cloneable"), ConfigError);
    net->to(torch::kDouble);
    CHECK_THROWS_WITH_AS(trainer.fit(batches), doctest::Contains("\"hidden.weight\" is no longer in its trainer"),
                         ConfigError);
    net->to(torch::kFloat);
    CHECK_FALSE(net->head->weight.equal(start));
  }
  CHECK_FALSE(net->head->weight.equal(start));
  Trainer again{mine, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  again.fit(batches);
  Trainer two{mine, optim::SGD{.learning_rate = 0.1}, parallel::DataParallel{.devices = 2, .threads = 1}};
  CHECK_THROWS_AS(two.fit(batches), ConfigError);
}

TEST_CASE("a module that was trained in place keeps no hooks, although its graph is still in use") {
  auto const net = std::make_shared<Net>(true);
  auto const of_user = net->head(torch::ones({1, 24})).sum();  // has an accumulator that is older than the replica's
  of_user.backward({}, true);
  net->unused->weight.mutable_grad() = torch::ones({3, 5});
  torch::Tensor of_trainer;
  auto const keeping_predict = [&](Net& module, auto const& batch) {
    auto const logits = predict(module, batch);
    if (module.is_training()) of_trainer = logits;
    return logits;
  };
  auto const accumulator = [&] { return torch::autograd::impl::grad_accumulator(net->head->weight); };
  auto const before = accumulator();
  {
    Trainer trainer{interop::Torch{net, keeping_predict, loss_of}, optim::SGD{.learning_rate = 0.1},
                    parallel::SingleDevice{.threads = 1}};
    auto batches = loader(11);
    trainer.fit(batches, {.epochs = 1});
    CHECK(accumulator() != before);
    CHECK(accumulator()->post_hooks().size() == 1);
    CHECK(before->post_hooks().empty());
    CHECK_FALSE(net->head->weight.grad().defined());
    CHECK_FALSE(net->unused->weight.grad().defined());
  }
  REQUIRE(of_trainer.defined());
  auto const in_graph = of_trainer.grad_fn()->next_edge(2).function->next_edge(0).function;  // of the transposed weight
  CHECK(in_graph->post_hooks().empty());
  CHECK(accumulator() != in_graph);
  CHECK(accumulator()->post_hooks().empty());
}

TEST_CASE("a module may have a parameter without elements") {
  struct WithEmpty : Net {
    torch::Tensor none{register_parameter("none", torch::zeros({0, 2}))};
    torch::Tensor forward(torch::Tensor const& x) { return Net::forward(torch::cat({x, none})); }
  };
  Trainer trainer{interop::Torch{[] { return std::make_shared<WithEmpty>(); }, predict, loss_of},
                  optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(11);
  CHECK(trainer.fit(batches, {.epochs = 1}).steps == 4);
}

TEST_CASE("a module that can be cloned is unchanged; module holders are accepted, too") {
  torch::manual_seed(2);
  torch::nn::Sequential net(torch::nn::Linear(2, 8), torch::nn::Functional(torch::relu), torch::nn::Linear(8, 2));
  auto const start = net->parameters()[0].detach().clone();
  Trainer trainer{interop::Torch{net,
                                 [](torch::nn::SequentialImpl& module, auto const& batch) {
                                   return module.forward(interop::tensor_of(batch[&Point::at]));
                                 },
                                 loss_of, interop::TorchRandom::as_is},
                  optim::AdamW{.learning_rate = 1e-2}, parallel::DataParallel{.devices = 3, .threads = 1}};
  auto batches = loader(2, 43), held_out = loader(7);  // in the last step of an epoch, two devices have no sample
  auto const record =
      trainer.fit(batches, train::Evaluation{held_out, train::Accuracy{&Point::inside}}, {.epochs = 25});
  CHECK(record.evaluations.back().loss < record.evaluations.front().loss);
  CHECK(net->parameters()[0].equal(start));
  interop::copy_trained(trainer, *net);
  CHECK_FALSE(net->parameters()[0].equal(start));
}

TEST_CASE("modules that cannot be trained are refused by name") {
  auto const wrong = std::make_shared<Net>();
  wrong->head->to(torch::kDouble);
  CHECK_THROWS_WITH_AS((interop::Torch{wrong, predict, loss_of}),
                       doctest::Contains("\"head.weight\" is a CPUDoubleType"), ConfigError);
  auto const computed = std::make_shared<Net>();
  computed->register_parameter("scale", computed->head->weight * 2);
  CHECK_THROWS_WITH_AS((interop::Torch{computed, predict, loss_of}),
                       doctest::Contains("\"scale\" is the result of an operation"), ConfigError);
  auto const hashing = std::make_shared<Net>();
  hashing->register_buffer("prime", torch::full({1}, std::int64_t{1000000007}, torch::kLong));
  CHECK_THROWS_WITH_AS((interop::Torch{hashing, predict, loss_of}),
                       doctest::Contains("\"prime\" is a CPULongType of large numbers"), ConfigError);
  auto batches = loader(11);
  auto const counting = std::make_shared<Net>();
  auto const seen = counting->register_buffer("seen", torch::full({1}, (std::int64_t{1} << 24) - 2, torch::kLong));
  Trainer counts{interop::Torch{counting,
                                [](Net& net, auto const& batch) {
                                  net.named_buffers()["seen"] += 1;
                                  return predict(net, batch);
                                },
                                loss_of},
                 optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(counts.fit(batches), doctest::Contains("\"seen\" has integers that float32 rounds"),
                       ConfigError);
  CHECK(seen.item<std::int64_t>() == (std::int64_t{1} << 24) + 1);
  auto const fixed = std::make_shared<Net>();
  for (auto& parameter : fixed->parameters()) parameter.requires_grad_(false);
  Trainer idle{interop::Torch{fixed, predict, loss_of}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(idle.fit(batches), doctest::Contains("no parameter of the module requires a gradient"),
                       ConfigError);
  Trainer trainer{interop::Torch{std::make_shared<Net>(), predict,
                                 [](torch::Tensor const& logits, auto const& batch) {
                                   return interop::TorchLoss{logits, batch.rows()};
                                 }},
                  optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(trainer.fit(batches), doctest::Contains("the loss has 22 elements"), ShapeError);
  Trainer constant{interop::Torch{std::make_shared<Net>(), predict,
                                  [](torch::Tensor const&, auto const& batch) {
                                    return interop::TorchLoss{torch::ones({}), batch.rows()};
                                  }},
                   optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(constant.fit(batches), doctest::Contains("step 1 gave no parameter a gradient"), Error);
  torch::nn::Linear other(2, 3);
  CHECK_THROWS_WITH_AS(interop::copy_trained(trainer, *other), doctest::Contains("\"weight\" of 6 elements"),
                       ConfigError);
  int made = 0;
  Trainer changing{interop::Torch{[&made] { return std::make_shared<Net>(++made > 1); }, predict, loss_of},
                   optim::SGD{}, parallel::DataParallel{.devices = 2, .threads = 1}};
  CHECK_THROWS_WITH_AS(changing.fit(batches), doctest::Contains("modules must have the same structure"), ConfigError);
}
