// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/frozen.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/checkpoint/load_averages.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/trainer/averages.hpp>
#include <lockstep/train/trainer/gradient_norms.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"

using namespace lockstep;

namespace {

/// A part that evaluation computes differently: with its running statistics, not the batch's.
class Backbone {
 public:
  void visit(auto&& each) { each("linear", linear_), each("norm", norm_); }
  template <class Context>
  auto forward(Context& context, nn::VariableOf<Context, 2> const& x) const {
    return norm_.forward(context, linear_.forward(context, x));
  }

 private:
  nn::Linear linear_{1, 8};
  nn::BatchNorm norm_{8};
};

/// The block without nn::Frozen, under its name.
struct Learned : Backbone {
  explicit Learned(Backbone block) : Backbone(block) {}
};

template <class Backbone_>
class Model {
 public:
  void visit(auto&& each) { each("backbone", backbone_), each("head", head_); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&line::Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return head_.forward(context, backbone_.forward(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& prediction, auto const& batch) const {
    return nn::mean_squared_error(context, prediction,
                                  batch[&line::Point::y].values.reshape(Extents<2>{batch.rows(), 1}));
  }

 private:
  Backbone_ backbone_{Backbone{}};
  nn::Linear head_{8, 1};
};
using FineTuned = Model<nn::Frozen<Backbone>>;

/// Has another parameter.
struct WithMore : FineTuned {
  void visit(auto&& each) {
    FineTuned::visit(each);
    each("more", more);
  }
  nn::Parameter more{{4}, nn::Initializer::constant(0)};
};

optim::AdamW optimizer() { return {.learning_rate = 0.05, .weight_decay = 0.1}; }

/// name -> values, for a model's parameters and buffers.
template <class Session>
std::vector<float> part_of(Session const& session, nn::ParameterLayout const& layout, std::string_view prefix) {
  std::vector<float> out;
  auto const take = [&](auto const& entries, auto const& values) {
    for (auto const& entry : entries)
      if (entry.name.starts_with(prefix))
        for (Index i = 0; i < entry.size; ++i) out.push_back(values[static_cast<std::size_t>(entry.offset + i)]);
  };
  take(layout.entries(), session.values());
  take(layout.buffers(), session.buffers());
  return out;
}

}  // namespace

TEST_CASE("a frozen block keeps its names, and its parameters are marked as frozen") {
  FineTuned tuned;
  Model<Learned> learned;
  auto const a = nn::ParameterLayout::of(tuned), b = nn::ParameterLayout::of(learned);
  REQUIRE(a.entries().size() == b.entries().size());
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    CHECK(a.entries()[i].name == b.entries()[i].name);
    CHECK(a.entries()[i].frozen == a.entries()[i].name.starts_with("backbone."));
    CHECK(!b.entries()[i].frozen);
  }
  CHECK(a.learned_size() ==
        a.entries().back().offset + 2 * nn::ParameterLayout::alignment);  // the head's two parameters
  CHECK(b.learned_size() == b.size());
}

TEST_CASE("it computes as in evaluation, stores nothing for backward, and later layers learn") {
  ThreadPool pool(1);
  Backbone block;
  auto const layout = nn::ParameterLayout::of(block);
  std::vector<float> values(static_cast<std::size_t>(layout.size())), gradients(values.size(), 7),
      buffers(static_cast<std::size_t>(layout.buffer_size()));
  nn::initialize(layout, 1, values.data());
  nn::initialize_buffers(layout, buffers.data());
  auto const kept = buffers;
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), gradients.data(), layout);
  context.parameters().bind_buffers(buffers.data());
  float numbers[] = {1, -2, 3};
  struct Computed {
    std::vector<float> values;
    bool has_gradient;
  };
  auto const run = [&](nn::Mode mode, auto const& layer) {
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(mode, 5);
    auto const y = layer.forward(context, context.input(TensorView<float, 2, HostSpace>{numbers, {3, 1}}));
    CHECK(context.mode() == mode);
    return Computed{{y.value.data, y.value.data + y.value.size()}, y.slot != nullptr};
  };
  auto const expected = run(nn::Mode::evaluation, block), frozen = run(nn::Mode::training, nn::Frozen(block));
  CHECK(frozen.values == expected.values);
  CHECK(!frozen.has_gradient);
  CHECK(buffers == kept);
  nn::Pass(context).backward({});
  for (std::size_t p = 0; p < layout.entries().size(); ++p) CHECK_FALSE(context.parameters().gradients().written(p));
  auto const learned = run(nn::Mode::training, block);
  CHECK(learned.values != expected.values);
  CHECK(learned.has_gradient);
}

TEST_CASE("training changes only unfrozen parameters, also with weight decay, bit-identically on two devices") {
  auto const tuned = [](auto policy) {
    Trainer trainer(FineTuned{}, optimizer(), std::move(policy), 3);
    auto const before = part_of(trainer, trainer.layout(), "backbone."),
               head = part_of(trainer, trainer.layout(), "head.");
    auto loader = line::loader(32, 4);
    auto const record = trainer.fit(loader, {.epochs = 8, .check_replicas_every = 3});
    CHECK(part_of(trainer, trainer.layout(), "backbone.") == before);
    CHECK(part_of(trainer, trainer.layout(), "head.") != head);
    CHECK(record.session.unused_parameters.empty());
    CHECK(record.train_loss < 0.1);
    return part_of(trainer, trainer.layout(), "");
  };
  auto const one = tuned(parallel::Reproducible{parallel::SingleDevice{}, 2});
  CHECK(tuned(parallel::DataParallel{.devices = 2}) == one);
  for (bool const shard : {false, true}) {
    launch::Options options;
    options.threads = 2;
    launch::run(options, [&](launch::World& world) {
      parallel::DistributedDataParallel policy{comm::connect(world)};
      policy.shard_optimizer = shard;
      CHECK(tuned(std::move(policy)) == one);
      return 0;
    });
  }
}

TEST_CASE("a checkpoint has no moments of frozen parameters, and resumes bit for bit") {
  lockstep_test::TemporaryFolder const folder;
  auto const fit = [&]<class Model_>(Model_ model, std::string const& run, Index epochs, std::string const& from) {
    Trainer trainer(std::move(model), optim::Averaged{optimizer(), 0.9}, parallel::SingleDevice{.threads = 1}, 3);
    auto loader = line::loader(32, 4);
    trainer.fit(loader, {.epochs = epochs, .checkpoints = {.folder = folder / run, .resume = from}});
    auto all = part_of(trainer, trainer.layout(), "");
    std::ranges::copy(train::averages(trainer), std::back_inserter(all));
    return all;
  };
  auto const half = folder / "half/step_16.safetensors", whole = folder / "whole/step_32.safetensors";
  auto const expected = fit(FineTuned{}, "whole", 4, "");
  fit(FineTuned{}, "half", 2, "");
  CHECK(fit(FineTuned{}, "resumed", 4, half) == expected);
  train::detail::SafetensorsFile const file(whole);
  for (auto const* const state : {"0", "1", "2"}) {
    auto const prefix = "optimizer." + std::string(state);
    CHECK_FALSE(file.header.find(prefix + ".backbone.linear.weight"));
    CHECK(file.header.find(prefix + ".head.weight"));
  }
  FineTuned tuned;
  auto const layout = nn::ParameterLayout::of(tuned);
  std::vector<float> averages(static_cast<std::size_t>(layout.size())),
      buffers(static_cast<std::size_t>(layout.buffer_size()));
  train::load_averages(whole, layout, averages, buffers);
  CHECK(std::ranges::equal(averages, std::span(expected).last(averages.size())));
  CHECK(parallel::OptimizerState<optim::AdamW>(layout).bytes() ==
        2 * sizeof(float) * static_cast<std::size_t>(layout.learned_size()));
  CHECK(std::filesystem::file_size(whole) <=
        train::detail::file_bytes(whole, layout, 3, {{train::Progress::key, std::string(4096, ' ')}}));

  CHECK_THROWS_WITH_AS(fit(Model<Learned>{}, "learned", 4, half),
                       doctest::Contains("has no moments of \"backbone.linear.weight\", which was frozen"), DataError);
  // Moments that frozen parameters do not have make no room for tensors of another model.
  fit(WithMore{}, "more", 2, "");
  CHECK_THROWS_WITH_AS(fit(FineTuned{}, "fewer", 4, folder / "more/step_16.safetensors"),
                       doctest::Contains("holds 18 tensors, and the model with its optimizer has 14; use the model"),
                       DataError);
  fit(Model<Learned>{}, "learned", 2, "");  // has all moments, as earlier versions wrote them of frozen parameters, too
  CHECK_NOTHROW(fit(FineTuned{}, "frozen", 4, folder / "learned/step_16.safetensors"));
}

TEST_CASE("a part trained elsewhere is loaded by its names") {
  lockstep_test::TemporaryFolder const folder;
  Trainer first(Model<Learned>{}, optimizer(), parallel::SingleDevice{}, 3);
  auto loader = line::loader(32, 4);
  first.fit(loader, {.epochs = 2});
  train::save_parameters(folder / "first", first.layout(), first.values(), {}, first.buffers());
  Trainer second(FineTuned{}, optimizer(), parallel::SingleDevice{}, 4);
  auto const head = part_of(second, second.layout(), "head.");
  second.load(folder / "first", "backbone.");
  CHECK(part_of(second, second.layout(), "backbone.") == part_of(first, first.layout(), "backbone."));
  CHECK(part_of(second, second.layout(), "head.") == head);
  CHECK_THROWS_WITH_AS(
      second.load(folder / "first", "encoder."),
      doctest::Contains(
          "no name in the model begins with \"encoder.\"; its first parameter is \"backbone.linear.weight\""),
      ConfigError);
}

namespace {

/// A part that computes gradients of some parameters although they are frozen: those of the normalization.
class Normalized {
 public:
  void visit(auto&& each) { each("norm", norm_), each("linear", linear_); }
  template <class Context>
  auto forward(Context& context, nn::VariableOf<Context, 2> const& x) const {
    return linear_.forward(context, norm_.forward(context, x));
  }

 private:
  nn::LayerNorm norm_{8};
  nn::Linear linear_{8, 1};
};

/// y = frozen(x) + low(x), after a trained map.
class Adapted {
 public:
  explicit Adapted(nn::InputGradient input_gradient) : frozen_{Normalized{}, input_gradient} {}
  void visit(auto&& each) { each("first", first_), each("frozen", frozen_), each("low", low_); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&line::Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    auto const y = first_.forward(context, x);
    return nn::add(context, frozen_.forward(context, y), low_.forward(context, y));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& prediction, auto const& batch) const {
    return nn::mean_squared_error(context, prediction,
                                  batch[&line::Point::y].values.reshape(Extents<2>{batch.rows(), 1}));
  }

 private:
  nn::Linear first_{1, 8};
  nn::Frozen<Normalized> frozen_;
  nn::Linear low_{8, 1};
};

}  // namespace

TEST_CASE("a frozen block can compute the gradient of its input, for trained parts before it") {
  for (bool const computed : {true, false}) {
    Adapted model(computed ? nn::InputGradient::computed : nn::InputGradient::none);
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<double> values(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 1, values.data());
    data::Collated const batch{data::PadCollate{}, std::vector<line::Point>{{0.5f, 1, 0}, {-2, 0.25f, 0}}};
    CHECK(nn::check_gradients(model, layout, values, batch.batch()).ok() == computed);
  }
  CHECK_THROWS_WITH_AS(nn::Frozen(Backbone{}, nn::InputGradient::computed), doctest::Contains("running statistics"),
                       ConfigError);
}

TEST_CASE("a frozen block whose input gradient is computed does not change, nor count in the gradient norm") {
  auto const trained = [](auto policy, double clip_norm) {
    Trainer trainer(Adapted{nn::InputGradient::computed}, optimizer(), std::move(policy), 3);
    auto const before = part_of(trainer, trainer.layout(), "frozen."),
               first = part_of(trainer, trainer.layout(), "first.");
    auto loader = line::loader(32, 4);
    auto const record = trainer.fit(loader, {.epochs = 8, .clip_norm = clip_norm});
    CHECK(part_of(trainer, trainer.layout(), "frozen.") == before);
    CHECK(part_of(trainer, trainer.layout(), "first.") != first);
    CHECK(record.session.unused_parameters.empty());
    if (!parallel::settings_of(trainer.policy()).shard_optimizer) {
      double squares = 0;
      for (auto const& [name, norm] : train::gradient_norms(trainer)) {
        squares += norm * norm;
        CHECK((norm == 0) == name.starts_with("frozen."));
      }
      if (clip_norm > 0) CHECK(trainer.gradient_norm() == doctest::Approx(std::sqrt(squares)));
    }
    return part_of(trainer, trainer.layout(), "");
  };
  for (double const clip_norm : {0.0, 1.0}) {
    auto const one = trained(parallel::DataParallel{.devices = 2}, clip_norm);
    for (bool const shard : {false, true}) {
      launch::Options options;
      options.threads = 2;
      launch::run(options, [&](launch::World& world) {
        parallel::DistributedDataParallel policy{comm::connect(world)};
        policy.shard_optimizer = shard;
        CHECK(trained(std::move(policy), clip_norm) == one);
        return 0;
      });
    }
  }
}

TEST_CASE("a frozen Linear computes no gradients of its parameters") {
  Adapted model(nn::InputGradient::computed);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size())), gradients(values.size());
  nn::initialize(layout, 1, values.data());
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), gradients.data(), layout);
  data::Collated const batch{data::PadCollate{}, std::vector<line::Point>{{0.5f, 1, 0}, {-2, 0.25f, 0}}};
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  static_cast<void>(model.loss(context, model.predict(context, batch.batch()), batch.batch()));
  nn::Pass(context).backward({});
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    auto const& name = layout.entries()[i].name;
    CAPTURE(name);
    CHECK(context.parameters().gradients().written(i) == !name.starts_with("frozen.linear."));
  }
}

namespace {
struct Throwing {
  void visit(auto&&) {}
  template <class Context>
  [[nodiscard]] int forward(Context&, int) const {
    throw std::runtime_error("a block fails");
  }
};
}  // namespace

TEST_CASE("an exception in a frozen block leaves the context in training mode") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  CHECK_THROWS_AS(static_cast<void>(nn::Frozen{Throwing{}}.forward(context, 1)), std::runtime_error);
  CHECK(context.mode() == nn::Mode::training);
}
