// SPDX-License-Identifier: Apache-2.0
// Trainers with manual steps, and trainers that fit several times.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/module/frozen.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "../temporary_folder.hpp"
#include "refused_elsewhere.hpp"

using namespace lockstep;

namespace {
struct Point {
  std::array<float, 2> at;
  float height;
};

/// Its results show a step's samples, their order, and its dropout.
class Net {
 public:
  explicit Net(double dropout = 0, Index width = 4) : hidden_{2, width}, dropout_{dropout}, head_{width, 1} {}
  void visit(auto&& each) { each("hidden", hidden_), each("head", head_); }
  template <class Context>
  auto forward(Context& context, nn::VariableOf<Context, 2> x, auto const& positions) const {
    auto const hidden = nn::relu(context, hidden_.forward(context, x));
    return head_.forward(context, dropout_.forward(context, hidden, positions));
  }
  auto predict(auto& context, auto const& batch) const {
    return forward(context, context.input(batch[&Point::at].values), batch.positions());
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& y, auto const& batch) const {
    return nn::mean_squared_error(context, y, batch[&Point::height]);
  }

 private:
  nn::Linear hidden_;
  nn::Dropout dropout_;
  nn::Linear head_;
};

std::vector<Point> points(Index count) {
  std::vector<Point> all;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    float const x = uniform(Philox(1), i), y = uniform(Philox(2), i);
    all.push_back({{x, y}, x - 2 * y});
  }
  return all;
}
auto loader(Index samples, Index batch_size) {
  return data::DataLoader{data::InMemoryDataset{points(samples)},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = batch_size}};
}
auto collated(Index count) { return data::Collated{data::PadCollate{}, points(count)}; }

std::vector<float> values_of(auto const& trainer) { return {trainer.values().begin(), trainer.values().end()}; }
optim::AdamW adamw() { return {.learning_rate = 0.05}; }
parallel::SingleDevice single() { return {.threads = 1}; }
parallel::DataParallel two() { return {.devices = 2, .threads = 1}; }

/// One epoch of a loader, with manual steps.
void step_through(auto& trainer, auto& loader, Index epoch) {
  loader.start(trainer.split(), epoch, 0, epoch + 1);
  for (Index step = 0; step < loader.steps(trainer.split()); ++step) trainer.step(loader.next());
}

/// Calls f(policy) under each: on two devices, on two ranks (with the first one's result), and with shards.
template <class F>
auto on_two(F const& f) {
  std::vector<std::invoke_result_t<F, parallel::DataParallel>> all;
  all.push_back(f(two()));
  all.emplace_back();
  launch::run({.threads = 2}, [&](launch::World& world) {
    auto result = f(parallel::DistributedDataParallel{comm::connect(world), 256, 1});
    if (world.rank == 0) all[1] = std::move(result);
    return 0;
  });
  all.push_back(f(parallel::Reproducible{single(), 2}));
  return all;
}
}  // namespace

TEST_CASE("two fits equal one of as many epochs: steps, orders and dropout continue, under every policy") {
  auto const fit = [](std::vector<Index> const& epochs) {
    return [epochs](auto policy) {
      auto data = loader(22, 3);
      Trainer trainer{Net{0.5}, adamw(), std::move(policy), 7};
      for (Index count : epochs)
        CHECK(trainer.fit(data, {.epochs = count}).steps == count * data.steps(trainer.split()));
      return values_of(trainer);
    };
  };
  auto const whole = fit({3})(single());
  CHECK(fit({1, 2})(single()) == whole);
  CHECK(fit({2, 0, 1})(single()) == whole);
  auto const together = on_two(fit({3})), apart = on_two(fit({2, 1}));
  CHECK(together[0] == together[1]);
  CHECK(apart == together);
}

TEST_CASE("a later fit of a trainer resumes from its checkpoint as without a pause") {
  lockstep_test::TemporaryFolder const folder;
  auto data = loader(20, 4);
  auto const second = [&](auto& trainer, train::Checkpoints checkpoints, Index most) {
    return trainer.fit(data, {.epochs = 2, .max_steps = most, .checkpoints = std::move(checkpoints)});
  };
  Trainer whole{Net{0.5}, adamw(), single(), 7};
  whole.fit(data, {.epochs = 1});
  second(whole, {.folder = folder / "whole", .every = 3}, 0);

  // In a child process, without earlier work.
  Trainer rest{Net{0.5}, adamw(), single(), 7};
  CHECK(second(rest, {.resume = folder / "whole/step_3.safetensors"}, 0).resumed() == 3);
  CHECK(values_of(rest) == values_of(whole));
  // A fit that was already complete counts as well.
  auto const ended = train::newest_checkpoint(folder / "whole");
  Trainer over{Net{0.5}, adamw(), single(), 7};
  second(over, {.resume = ended}, 0);
  over.fit(data, {.epochs = 1}), rest.fit(data, {.epochs = 1});
  CHECK(values_of(over) == values_of(rest));
  CHECK(values_of(over) != values_of(whole));
}

TEST_CASE("manual steps equal a fit's") {
  auto data = loader(24, 4);
  Trainer fitted{Net{}, adamw(), single()}, stepped{Net{}, adamw(), single()};
  fitted.fit(data, {.epochs = 2});
  for (Index epoch : {0, 1}) step_through(stepped, data, epoch);
  CHECK(values_of(stepped) == values_of(fitted));

  // Both continue after the other one, except for the order, which is the loader's here.
  auto const none = values_of(stepped);
  fitted.fit(data, {.epochs = 1});
  step_through(stepped, data, 2);
  CHECK(values_of(stepped) == values_of(fitted));
  CHECK(values_of(stepped) != none);
}

TEST_CASE("batches and their holders are equivalent for a step") {
  auto const loss = [](auto const& batches) {
    Trainer trainer{Net{}, adamw(), single()};
    return trainer.step(batches).sum;
  };
  auto const one = collated(6);
  CHECK(loss(one) == loss(one.batch()));
  std::vector<data::Collated<data::PadCollate, Point>> held;
  for (int i = 0; i < 3; ++i) held.push_back(collated(6));
  CHECK(loss(held) == loss(std::vector(3, one.batch())));
}

TEST_CASE("manual steps learn equally on two devices and two ranks, and over the sum of several batches") {
  auto const all = on_two([](auto policy) {
    auto data = loader(24, 3);
    Trainer trainer{Net{0.5}, adamw(), std::move(policy)};
    step_through(trainer, data, 0);
    return values_of(trainer);
  });
  CHECK(all[0] == all[1]);
  CHECK(all[0] == all[2]);

  auto const batch = collated(6);
  Trainer once{Net{}, optim::SGD{.learning_rate = 0.1}, single()};
  Trainer twice{Net{}, optim::SGD{.learning_rate = 0.1}, single()};
  Trainer devices{Net{}, optim::SGD{.learning_rate = 0.1}, two()};
  auto const loss = once.step(batch.batch());
  CHECK(loss.weight == 6);
  std::vector const both{batch.batch(), batch.batch()};
  auto const summed = twice.step(both);
  CHECK(summed.weight == 12);
  CHECK(summed.mean() == doctest::Approx(loss.mean()));
  CHECK(devices.step(both).sum == summed.sum);
  for (std::size_t i = 0; i < once.values().size(); ++i) {
    CHECK(twice.values()[i] == doctest::Approx(once.values()[i]));
    CHECK(devices.values()[i] == twice.values()[i]);
  }
}

TEST_CASE("a step's options scale its rate and clip its gradient") {
  auto const batch = collated(6);
  auto const step = [&](double rate, StepOptions const& options) {
    Trainer trainer{Net{}, optim::SGD{.learning_rate = rate}, single()};
    trainer.step(batch.batch(), options);
    return values_of(trainer);
  };
  CHECK(step(0.1, {.rate_factor = 0.5}) == step(0.05, {}));
  CHECK(step(0.1, {.clip_norm = 1e-3}) != step(0.1, {}));
  auto const begun = step(0, {}), clipped = step(1, {.clip_norm = 1e-3});
  double moved = 0;
  for (std::size_t i = 0; i < begun.size(); ++i) moved += std::pow(double{clipped[i]} - double{begun[i]}, 2);
  CHECK(std::sqrt(moved) == doctest::Approx(1e-3).epsilon(1e-3));
}

TEST_CASE("parameters with rate 0 are not in the gradient's norm, under any policy") {
  auto const batches = std::vector{points(6), points(4)};
  auto const norm = [&](optim::RateRule const& rates, auto policy, double clip_norm = 1e-3) {
    Trainer trainer{Net{}, optim::SGD{.learning_rate = 0.1, .rates = rates}, std::move(policy)};
    CHECK(trainer.gradient_norm() == 0);
    std::vector<data::Collated<data::PadCollate, Point>> held;
    for (int shard = 0; shard < trainer.split().count; ++shard)
      held.emplace_back(data::PadCollate{}, batches[static_cast<std::size_t>(trainer.split().first + shard) % 2]);
    trainer.step(held, {.clip_norm = clip_norm});
    return trainer.gradient_norm();
  };
  auto const check = [&](auto const& policy) {
    auto const hidden = norm([](std::string_view name, auto) { return name.starts_with("hidden"); }, policy());
    auto const head = norm([](std::string_view name, auto) { return name.starts_with("head"); }, policy());
    auto const both = norm({}, policy());
    CHECK(hidden > 0.01);
    CHECK(head > 0.01);
    CHECK(both == doctest::Approx(std::hypot(hidden, head)).epsilon(1e-6));
    CHECK(norm({}, policy(), 0) == 0);  // no layer needs it
    CHECK(norm({}, policy(), 1e9) == both);
  };
  check(single);
  check(two);
  launch::run({.threads = 2}, [&](launch::World& world) {
    for (bool shard : {false, true})
      check([&] {
        return parallel::DistributedDataParallel{comm::connect(world), 256, 1, parallel::BufferPolicy::first, shard};
      });
    return 0;
  });
}

TEST_CASE("diverged ranks of a manual loop are found on request") {
  std::vector<std::string> printed(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    Trainer trainer{Net{}, adamw(), parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
    trainer.step(collated(6).batch());
    trainer.check_replicas();
    trainer.step(collated(6).batch(), {.rate_factor = world.rank == 0 ? 1.0 : 0.5});
    try {
      trainer.check_replicas();
    } catch (CollectiveMismatch const& error) {
      printed[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  for (auto const& text : printed)
    CHECK_MESSAGE(
        text.find("after step 2 the parameter \"hidden.weight\" of rank 1 differs from rank 0's") != text.npos, text);
}

TEST_CASE("ranks that would step on equal batches of a loader are refused, and ranks with their own batches are not") {
  std::vector<std::string> printed(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    Trainer trainer{Net{}, adamw(), parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
    auto all = loader(8, 4);
    all.start({}, 0, 0, 1);
    try {
      trainer.step(all.next());
    } catch (ConfigError const& error) {
      printed[static_cast<std::size_t>(world.rank)] = error.what();
    }
    auto const held = all.next();
    trainer.step(held.batches());
    step_through(trainer, all, 1);
    return 0;
  });
  CHECK(printed[1].starts_with(
      "step: the loader was started for the shards from 0 on, 1 of 1, but this rank takes the shards "
      "from 1 on, 1 of 2"));
  CHECK(printed[0].find("loader.start(trainer.split(), ") != printed[0].npos);
  Trainer alone{Net{}, adamw(), single()};
  auto part = loader(8, 4);
  part.start({1, 1, 2}, 0, 0, 1);
  alone.step(part.next());
}

TEST_CASE("dropout differs between steps, also on equal batches, and between seeds") {
  auto const batch = collated(6);
  auto const losses = [&](std::uint64_t seed) {
    Trainer trainer{Net{0.5, 32}, optim::SGD{.learning_rate = 0}, single(), seed};
    std::vector const twice{batch.batch(), batch.batch()};
    std::vector<double> sums{trainer.step(batch.batch()).sum, trainer.step(batch.batch()).sum};
    sums.push_back(trainer.step(twice).sum / 2);
    return sums;
  };
  auto const one = losses(1);
  CHECK(one[0] != one[1]);
  CHECK(one[1] != one[2]);
  CHECK(losses(1) == one);
  CHECK(losses(2) != one);
}

TEST_CASE("in batches that several devices make themselves, dropout differs by their first positions") {
  std::vector const same(6, points(1)[0]);
  auto const losses = [&](Index first) {
    data::Collated const one{data::PadCollate{}, same}, other{data::PadCollate{}, same, first};
    auto const sum = [&](auto const& a, auto const& b) {
      Trainer trainer{Net{0.5, 32}, optim::SGD{.learning_rate = 0}, parallel::DataParallel{.devices = 2, .threads = 1}};
      return trainer.step(std::vector{a.batch(), b.batch()}).sum;
    };
    return std::pair{sum(one, one), sum(one, other)};
  };
  auto const [twice, equal] = losses(0);
  CHECK(twice == equal);
  auto const [again, apart] = losses(6);
  CHECK(again == twice);
  CHECK(apart != twice);
}

TEST_CASE("in float16 manual steps scale the loss, and skip overflows") {
  auto large = points(6);
  for (auto& each : large) each.height *= 1e4f;  // gradients of about 1e4 times the scale, 2^16 at first
  data::Collated const batch{data::PadCollate{}, large}, small{data::PadCollate{}, points(6)};
  Trainer trainer{nn::InFloat16{Net{}}, adamw(), single()};
  auto const begun = values_of(trainer);
  trainer.step(batch.batch());
  CHECK(values_of(trainer) == begun);
  for (int i = 0; i < 20; ++i) trainer.step(batch.batch());
  CHECK(values_of(trainer) != begun);
  // The optimizer's count excludes skipped steps: its first step has the length of its rate.
  Trainer counts{nn::InFloat16{Net{}}, adamw(), single()};
  for (int i = 0; i < 3; ++i) counts.step(batch.batch());
  REQUIRE(values_of(counts) == begun);
  auto data = data::DataLoader{
      data::InMemoryDataset{points(6)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 6}};
  Trainer fresh{nn::InFloat16{Net{}}, adamw(), single()};
  FitOptions const options{.loss_scaler = {.start = 1}};
  counts.fit(data, options), fresh.fit(data, options);
  CHECK(values_of(counts) == values_of(fresh));
  CHECK_THROWS_WITH_AS(counts.step(small.batch(), {.loss_scaler = {.start = 3}}), doctest::Contains("start"),
                       ConfigError);
}

TEST_CASE("a trainer's first step has the given loss scale, and later steps continue from there") {
  auto large = points(6);
  for (auto& each : large) each.height *= 1e4f;  // gradients that overflow at 2^16
  data::Collated const batch{data::PadCollate{}, large};
  Trainer trainer{nn::InFloat16{Net{}}, adamw(), two()};
  std::vector const both{batch.batch(), batch.batch()};
  auto const begun = values_of(trainer);
  trainer.step(both, {.loss_scaler = {.start = 1}});
  auto const first = values_of(trainer);
  CHECK(first != begun);
  trainer.step(both, {.loss_scaler = {.start = 0x1p16}});
  CHECK(values_of(trainer) != first);
}

TEST_CASE("impossible steps are refused before any learning") {
  auto const batch = collated(6);
  Trainer trainer{Net{}, adamw(), two()};
  auto const begun = values_of(trainer);
  std::vector both{batch.batch(), batch.batch()};
  CHECK_THROWS_WITH_AS(trainer.step(batch.batch()),
                       "step: the number of batches is 1; it must be 2, one for each device or shard of this process, "
                       "or a multiple, whose gradients are summed",
                       ConfigError);
  CHECK_THROWS_WITH_AS(trainer.step(both, {.rate_factor = -1}),
                       "step: rate_factor is -1; it must be a finite number of at least 0", ConfigError);
  CHECK_THROWS_WITH_AS(trainer.step(both, {.clip_norm = std::nan("")}), doctest::Contains("clip_norm is nan"),
                       ConfigError);
  both.clear();
  CHECK_THROWS_WITH_AS(trainer.step(both), doctest::Contains("the number of batches is 0"), ConfigError);
  CHECK(values_of(trainer) == begun);
  Trainer wrong{Net{}, optim::AdamW{.beta1 = 2}, single()};
  CHECK_THROWS_WITH_AS(wrong.step(batch.batch()), doctest::Contains("beta1 is 2"), ConfigError);

  auto nowhere = points(6);
  nowhere[2].height = std::numeric_limits<float>::infinity();
  data::Collated const infinite{data::PadCollate{}, nowhere};
  Trainer sound{Net{}, adamw(), single()};
  CHECK_THROWS_WITH_AS(sound.step(infinite.batch()), doctest::Contains("the loss of step 1 is inf"), Error);
}

namespace {
class Normed {
 public:
  void visit(auto&& each) { each("net", net_), each("norm", norm_); }
  auto predict(auto& context, auto const& batch) const {
    return net_.forward(context, norm_.forward(context, context.input(batch[&Point::at].values)), batch.positions());
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& y, auto const& batch) const {
    return nn::mean_squared_error(context, y, batch[&Point::height]);
  }

 private:
  nn::BatchNorm norm_{2};
  Net net_;
};
/// A net that plays against another one.
class Pair {
 public:
  void visit(auto&& each) { each("other", other_), each("own", own_); }
  auto predict(auto& context, auto const& batch) const { return own_.predict(context, batch); }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& y, auto const& batch) const {
    return own_.loss(context, y, batch);
  }

 private:
  nn::Frozen<Net> other_{Net{}};
  Net own_;
};
double value_of(auto const& trainer, std::string_view name) {
  for (auto const& entry : trainer.layout().entries())
    if (entry.name == name) return double{trainer.values()[static_cast<std::size_t>(entry.offset)]};
  return HUGE_VAL;
}
}  // namespace

TEST_CASE("a trainer copies another one's parameters and buffers, as a whole, in part and by a fraction") {
  auto const batch = collated(6);
  Trainer first{Normed{}, adamw(), single(), 1};
  Trainer second{Normed{}, adamw(), two(), 2};
  for (int i = 0; i < 3; ++i) first.step(batch.batch());
  auto const before = values_of(second);
  std::vector<float> const buffers(second.buffers().begin(), second.buffers().end());
  auto const half = [](float a, float b) { return a + 0.5f * (b - a); };
  second.copy_parameters(first, 0.5);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(second.values()[i] == half(before[i], first.values()[i]));
  for (std::size_t i = 0; i < buffers.size(); ++i) CHECK(second.buffers()[i] == half(buffers[i], first.buffers()[i]));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  second.take(first, 0);  // the former name
#pragma GCC diagnostic pop
  CHECK(second.values()[0] == half(before[0], first.values()[0]));
  second.copy_parameters(first);
  CHECK(values_of(second) == values_of(first));
  CHECK(std::equal(first.buffers().begin(), first.buffers().end(), second.buffers().begin()));
  second.step(std::vector{batch.batch(), batch.batch()});  // every replica has them
  CHECK(values_of(second) != values_of(first));

  Trainer net{Net{}, adamw(), single(), 3};
  Trainer pair{Pair{}, adamw(), single(), 4};
  auto const own = value_of(pair, "own.head.weight");
  pair.copy_parameters(net, "other.", "");
  CHECK(value_of(pair, "other.head.weight") == value_of(net, "head.weight"));
  CHECK(value_of(pair, "own.head.weight") == own);
  net.copy_parameters(pair, "", "own.");
  CHECK(value_of(net, "head.weight") == own);
}

TEST_CASE("training on predictions gives equal bits on two devices and two ranks, if running statistics are equal") {
  auto const learn = [](bool synchronizes) {
    return on_two([synchronizes](auto policy) {
      auto const begin = policy.first_shard(), end = begin + policy.shards();
      Trainer trainer{Normed{}, adamw(), std::move(policy)};
      train::Predictor predictor{Normed{}, trainer};
      for (int step = 0; step < 4; ++step) {
        std::vector<decltype(collated(0))> batches;
        for (Index shard = begin; shard < end; ++shard) {
          auto const all = points(12);
          std::vector<Point> own(all.begin() + 6 * shard, all.begin() + 6 * (shard + 1));
          data::Collated const seen{data::PadCollate{}, own};
          auto const predicted = predictor.predict(seen.batch());
          for (Index row = 0; auto& point : own) point.height += predicted.value(row++, 0) / 2;
          batches.emplace_back(data::PadCollate{}, own, 6 * shard);
        }
        trainer.step(batches);
        if (synchronizes) trainer.synchronize_buffers();
        predictor.set(trainer);
      }
      return values_of(trainer);
    });
  };
  auto const equal = learn(true);
  CHECK(equal[0] == equal[1]);
  CHECK(equal[0] == equal[2]);
  auto const own = learn(false);  // each rank predicts with its own statistics
  CHECK(own[0] == equal[0]);
  CHECK(own[1] != equal[1]);
}

TEST_CASE("impossible copies are refused by name, and change nothing") {
  Trainer net{Net{}, adamw(), single(), 1};
  Trainer wide{Net{0, 8}, adamw(), single(), 2};
  Trainer pair{Pair{}, adamw(), single(), 3};
  auto const before = values_of(net);
  CHECK_THROWS_WITH_AS(net.copy_parameters(pair),
                       "copy_parameters: the other model has no \"hidden.weight\", to be copied to \"hidden.weight\"; "
                       "copy_parameters(other, "
                       "prefix, in_other) maps names",
                       ConfigError);
  CHECK_THROWS_WITH_AS(
      net.copy_parameters(wide),
      "copy_parameters: \"hidden.weight\" of the other model has shape [8, 2] and \"hidden.weight\" [4, 2]; give "
      "both models the same sizes",
      ShapeError);
  CHECK_THROWS_WITH_AS(
      net.copy_parameters(pair, "others.", ""),
      "copy_parameters: no name in the model begins with \"others.\"; its first parameter is \"hidden.weight\"",
      ConfigError);
  for (double share : {-0.1, 1.5, std::nan("")})
    CHECK_THROWS_WITH_AS(net.copy_parameters(net, share),
                         doctest::Contains("copies nothing, and at most 1, which copies all"), ConfigError);
  CHECK(values_of(net) == before);
}

TEST_CASE("a step that threw, and so changed nothing, does not count") {
  auto const moved = [](bool fails, bool by_fit) {
    Trainer trainer{Net{}, adamw(), single()};
    auto const train = [&](float height) {
      auto all = points(4);
      for (auto& each : all) each.height += height;
      if (!by_fit) return static_cast<void>(trainer.step(data::Collated{data::PadCollate{}, all}));
      data::DataLoader once{
          data::InMemoryDataset{all}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
      trainer.fit(once, {.epochs = 1});
    };
    if (fails) CHECK_THROWS_AS(train(std::numeric_limits<float>::quiet_NaN()), Error);
    train(0);
    return values_of(trainer);
  };
  for (bool const by_fit : {false, true}) CHECK(moved(true, by_fit) == moved(false, by_fit));
}

namespace {
struct Partly : Net {
  Partly() {
    hidden.visit([](char const*, nn::Parameter& p) { p.frozen = true; });
  }
  nn::Linear hidden{2, 2};
  void visit(auto&& each) { each("hidden_first", hidden), Net::visit(each); }
  auto predict(auto& context, auto const& batch) const {
    auto const x = hidden.forward(context, context.input(batch[&Point::at].values));
    return forward(context, x, batch.positions());
  }
};
struct Whole : Partly {
  Whole() {
    hidden.visit([](char const*, nn::Parameter& p) { p.frozen = false; });
  }
};
}  // namespace

TEST_CASE("frozen parameters are not in the norm, although training uses them") {
  auto const norm = [](auto model, float far) {
    std::vector<double> all(2);
    launch::run({.threads = 2}, [&](launch::World& world) {
      Trainer trainer{model, adamw(), parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
      for (int i = 0; i < 2; ++i) {
        auto mine = points(3);
        if (world.rank == 1) mine[0].at[0] = far;
        static_cast<void>(trainer.step(data::Collated{data::PadCollate{}, mine}, {.clip_norm = 0.01}));
        if (i == 0) all[static_cast<std::size_t>(world.rank)] = trainer.gradient_norm();
      }
      trainer.check_replicas();
      return 0;
    });
    CHECK(all[0] == all[1]);
    return all[0];
  };
  CHECK(norm(Partly{}, 30) < norm(Whole{}, 30));
}

TEST_CASE("a call concurrent with another thread's is refused, and a nested call of its own thread is not") {
  lockstep_test::TemporaryFolder const folder;
  auto training = loader(8, 4), other = loader(8, 4);
  data::Collated const batch{data::PadCollate{}, points(4)};
  Trainer trainer{Net{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}},
      alone{Net{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  struct Meanwhile final : train::Observer {
    explicit Meanwhile(std::function<void()> f) : call(std::move(f)) {}
    void step(train::StepReport const&) override { call(); }
    std::function<void()> call;
  };
  int refused = 0;
  auto const refuses = [&](auto call) {
    refused += lockstep_test::refused_elsewhere(call, "Trainer: two threads use it at once");
  };
  Meanwhile observer([&] {
    refuses([&] { trainer.step(batch); });
    refuses([&] { trainer.fit(other); });
    refuses([&] { static_cast<void>(trainer.evaluate(train::Evaluation{other})); });
    refuses([&] { trainer.save(folder / "p"); });
    refuses([&] { trainer.load(folder / "p"); });
    refuses([&] { trainer.copy_parameters(alone); });
    trainer.save(folder / "p");
    static_cast<void>(trainer.evaluate(train::Evaluation{other}));
  });
  trainer.fit(training, {.epochs = 1, .observers = {&observer}});
  CHECK(refused == 12);
  auto again = loader(8, 4);
  alone.fit(again, {.epochs = 1});
  CHECK(std::equal(trainer.values().begin(), trainer.values().end(), alone.values().begin()));
  refused = 0;
  refuses([&] { trainer.step(batch); });  // in turn
  CHECK(refused == 0);
}
