// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy/reproducible.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <string>
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
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "parallel/session_cases.hpp"
#include "temporary_folder.hpp"
#include "three_gpus.hpp"
#include "train/losses.hpp"
#include "train/texts.hpp"

using namespace lockstep;
using lockstep_test::Losses;
using lockstep_test::random_texts;
using lockstep_test::Text;
using parallel::Reproducible;

namespace {

using Ddp = parallel::DistributedDataParallel<comm::AnyCommunicator>;

constexpr Index words = 50, longest = 6, width = 128;

/// With everything that could depend on the division of a batch: a row-sparse table, dropout, batch statistics, a layer
/// that only some batches use, and one that none uses.
class Model {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_), each("norm", norm_), each("head", head_);
    each("second", second_), each("unused", unused_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    auto const y = norm_.forward(context, nn::mean_pool(context, x));
    bool const even = batch.rows() > 0 && batch.positions()(0) % 2 == 0;
    return (even ? second_ : head_).forward(context, y);
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = words,
                                 .length = longest,
                                 .width = width,
                                 .dropout = 0.2,
                                 .token_gradient = nn::GradientForm::by_rows}};
  nn::BatchNorm norm_{width};
  nn::Linear head_{width, 3}, second_{width, 3}, unused_{48, width};
};

struct Outcome {
  std::vector<float> values, buffers;
  std::vector<double> losses;
  train::EvaluationReport evaluation;
  train::RunRecord record;

  bool operator==(Outcome const& other) const {
    return values == other.values && buffers == other.buffers && losses == other.losses &&
           evaluation.loss == other.evaluation.loss && evaluation.metrics == other.evaluation.metrics &&
           record.session.unused_parameters == other.record.session.unused_parameters;
  }
};

/// 53 samples in micro-steps of `shards` batches of two: the last one is short, and some of its shards are empty.
template <class Trained = Model, class Policy>
Outcome fit(Policy policy, int shards, FitOptions options) {
  REQUIRE(policy.all_shards() == shards);
  Losses losses;
  options.epochs = 3;
  options.observers = {&losses};
  Trainer trainer{Trained(Model()), optim::AdamW{.learning_rate = 1e-2, .decays = optim::DecayRule::matrices},
                  std::move(policy), 5};
  data::DataLoader loader{data::InMemoryDataset{random_texts(53, 1)},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = 2, .workers = 0}};
  data::DataLoader held_out{data::InMemoryDataset{random_texts(9, 2)},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 2, .workers = 0}};
  auto record = trainer.fit(loader, train::Evaluation{held_out, train::Accuracy{&Text::label}}, options);
  CHECK(record.effective_batch_size == 2 * shards * std::max<Index>(1, options.accumulation));
  CHECK(record.batch_size * record.world_size * record.devices == 2 * shards);
  Outcome outcome{{trainer.values().begin(), trainer.values().end()},
                  {trainer.buffers().begin(), trainer.buffers().end()},
                  losses.values,
                  record.evaluations.back(),
                  record};
  return outcome;
}
/// Runs thread ranks and returns the first rank's outcome.
template <class Trained = Model>
Outcome fit_ranks(int ranks, int shards, FitOptions const& options,
                  parallel::BufferPolicy buffers = parallel::BufferPolicy::first, bool shard_optimizer = false) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  launch::run({.threads = ranks}, [&](launch::World& world) {
    auto own = options;
    if (world.rank > 0) own.checkpoints = {};  // the first one's counts
    Ddp policy{comm::connect(world), 256, 1, buffers, shard_optimizer};
    all[static_cast<std::size_t>(world.rank)] = fit<Trained>(Reproducible{std::move(policy), shards}, shards, own);
    return 0;
  });
  for (auto const& one : all) CHECK(one.values == all[0].values);
  return all[0];
}
template <class Trained = Model>
Outcome fit_sharded(int ranks, int shards, FitOptions const& options) {
  auto outcome = fit_ranks<Trained>(ranks, shards, options, parallel::BufferPolicy::first, true);
  CHECK(outcome.record.shard_optimizer);
  return outcome;
}
template <class Trained = Model>
Outcome fit_devices(int devices, int shards, FitOptions const& options,
                    parallel::BufferPolicy buffers = parallel::BufferPolicy::first) {
  return fit<Trained>(
      Reproducible{parallel::DataParallel{.devices = devices, .threads = 1, .buffers = buffers}, shards}, shards,
      options);
}
template <class Trained = Model>
Outcome fit_single(int shards, FitOptions const& options, int threads = 1) {
  return fit<Trained>(Reproducible{parallel::SingleDevice{.threads = threads}, shards}, shards, options);
}

/// Its parameter's gradient is -0 if a shard has rows, and not written if it has none.
struct NegativeZero {
  nn::Parameter p{{3}, nn::Initializer::constant(1)};
  void visit(auto&& each) { each("p", p); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const& batch) const {
    auto const out = context.template variable<1>({1});
    context.gradient(out).data[0] = 0;
    if (batch.rows() > 0)
      context.on_backward(out, std::tie(p), [this](Context& c) { std::fill_n(c.gradient(p).data, 3, -0.0f); });
    return {0, static_cast<double>(batch.rows())};
  }
};

std::string step_file(std::string const& folder, Index step) {
  return folder + "/step_" + std::to_string(step) + ".safetensors";
}

}  // namespace

TEST_CASE("one rank has the bits of one device per shard, and so has every number between") {
  for (int shards : {1, 2, 4, 8}) {
    CAPTURE(shards);
    FitOptions const options{.clip_norm = 0.5};
    auto const expected = fit(parallel::DataParallel{.devices = shards, .threads = 1}, shards, options);
    REQUIRE(expected.losses.size() == static_cast<std::size_t>(3 * ((53 + 2 * shards - 1) / (2 * shards))));
    CHECK(expected.record.reproducible == 0);
    CHECK(fit_single(shards, options) == expected);
    CHECK(fit_single(shards, options, 3) == expected);
    for (int n = 1; n <= shards && n <= 4; n *= 2) {
      CAPTURE(n);
      auto const devices = fit_devices(n, shards, options), ranks = fit_ranks(n, shards, options);
      CHECK(devices == expected);
      CHECK(ranks == expected);
      CHECK(devices.record.devices == n);
      CHECK(ranks.record.world_size == n);
      CHECK(ranks.record.reproducible == shards);
    }
  }
  // Otherwise they differ, so the comparison can fail.
  CHECK(fit_single(2, {}).values != fit(parallel::SingleDevice{.threads = 1}, 1, {}).values);
}

TEST_CASE("accumulated batches, and bfloat16, also have equal bits") {
  for (int shards : {2, 4}) {
    for (Index accumulation : {2, 3}) {
      FitOptions const options{.accumulation = accumulation, .clip_norm = 0.5};
      auto const expected = fit(parallel::DataParallel{.devices = shards, .threads = 1}, shards, options);
      CHECK(fit_single(shards, options) == expected);
      CHECK(fit_devices(2, shards, options) == expected);
      for (int ranks = 1; ranks <= shards; ranks *= 2) CHECK(fit_ranks(ranks, shards, options) == expected);
    }
  }
  using Low = nn::InBfloat16<Model>;
  auto const expected = fit<Low>(parallel::DataParallel{.devices = 4, .threads = 1}, 4, {});
  CHECK(fit_single<Low>(4, {}) == expected);
  CHECK(fit_ranks<Low>(2, 4, {}) == expected);
}

TEST_CASE("ranks with a sharded optimizer state also have equal bits") {
  for (Index accumulation : {1, 2}) {
    FitOptions const options{.accumulation = accumulation, .clip_norm = 0.5, .check_replicas_every = 2};
    auto const expected = fit_single(4, options);
    for (int ranks : {1, 2, 4}) CHECK(fit_sharded(ranks, 4, options) == expected);
  }
  using Low = nn::InBfloat16<Model>;
  CHECK(fit_sharded<Low>(2, 4, {.clip_norm = 0.5}) == fit_single<Low>(4, {.clip_norm = 0.5}));
}

TEST_CASE("float16 also has equal bits, with skipped steps") {
  using Half = nn::InFloat16<Model>;
  FitOptions const options{.accumulation = 2, .loss_scaler = {.start = 0x1p20, .growth_interval = 3}};
  auto const expected = fit<Half>(parallel::DataParallel{.devices = 4, .threads = 1}, 4, options);
  REQUIRE(expected.record.loss_scale);
  CHECK(expected.record.loss_scale.skipped >= 4);
  CHECK(expected.record.loss_scale.skipped < std::ssize(expected.losses));
  for (auto const& outcome : {fit_single<Half>(4, options), fit_devices<Half>(2, 4, options),
                              fit_ranks<Half>(2, 4, options), fit_sharded<Half>(2, 4, options)}) {
    CHECK(outcome == expected);
    CHECK(outcome.record.loss_scale == expected.record.loss_scale);
  }
}

TEST_CASE("buffers are each shard's own, and shared as with one device per shard") {
  using parallel::BufferPolicy;
  for (auto policy : {BufferPolicy::first, BufferPolicy::mean, BufferPolicy::own}) {
    auto const expected =
        fit(parallel::DataParallel{.devices = 4, .threads = 1, .buffers = policy}, 4, {.accumulation = 1});
    for (int n : {1, 2, 4}) {
      CHECK(fit_devices(n, 4, {}, policy) == expected);
      CHECK(fit_ranks(n, 4, {}, policy) == expected);
    }
  }
  for (int ranks : {1, 2, 4})
    launch::run({.threads = ranks}, [&](launch::World& world) {
      session_cases::Counting model;
      auto const layout = nn::ParameterLayout::of(model);
      Reproducible policy{Ddp{comm::connect(world), 64, 1}, 4};
      std::vector<float> const start(static_cast<std::size_t>(layout.size()), session_cases::start_value);
      Ddp::Session<session_cases::Counting, optim::SGD> session(policy, model, layout, start);
      session_cases::check_buffers(session, policy.first_shard(), policy.shards(), 4);
      return 0;
    });
}

TEST_CASE("shards step together by the gradient of the weighted mean, for any distribution of samples") {
  toy::Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> const start(static_cast<std::size_t>(layout.size()), session_cases::start_value);
  for (int shards : {1, 2, 4, 16}) {
    Reproducible policy{parallel::SingleDevice{.threads = 1}, shards};
    parallel::SingleDevice::Session<toy::Model, optim::SGD> session(policy, model, layout, start);
    session_cases::check_steps(session, layout, 0, shards, shards);
  }
  launch::run({.threads = 2}, [&](launch::World& world) {
    Reproducible policy{Ddp{comm::connect(world), 64, 1}, 8};
    Ddp::Session<toy::Model, optim::SGD> session(policy, model, layout, start);
    session_cases::check_steps(session, layout, 4 * world.rank, 4, 8);
    return 0;
  });
}

TEST_CASE("a run resumes with other ranks or devices, with equal bits") {
  lockstep_test::TemporaryFolder const folder;
  FitOptions options{.accumulation = 2, .clip_norm = 0.5};
  auto const whole = fit_single(4, options);
  REQUIRE(whole.losses.size() == 12);
  auto const part = [&](auto const& run, Index from, Index to) {
    options.max_steps = to;
    options.checkpoints = {.folder = folder / "saved", .resume = from == 0 ? "" : step_file(folder / "saved", from)};
    return run(options);
  };
  part([](FitOptions const& o) { return fit_sharded(4, 4, o); }, 0, 3);
  part([](FitOptions const& o) { return fit_single(4, o); }, 3, 6);
  part([](FitOptions const& o) { return fit_devices(2, 4, o); }, 6, 7);
  part([](FitOptions const& o) { return fit_sharded(2, 4, o); }, 7, 9);
  auto const last = part([](FitOptions const& o) { return fit_ranks(2, 4, o); }, 9, 12);
  CHECK(last.values == whole.values);
  CHECK(last.buffers == whole.buffers);
  CHECK(last.record.train_loss == whole.record.train_loss);
  CHECK(last.evaluation.loss == whole.evaluation.loss);

  options.checkpoints = {.resume = step_file(folder / "saved", 3)};
  auto const plain = [&] { fit(parallel::DataParallel{.devices = 4, .threads = 1}, 4, options); };
  CHECK_THROWS_WITH_AS(
      plain(),
      doctest::Contains("was saved under Reproducible with 4 shards, but training would continue without "
                        "Reproducible"),
      ConfigError);
}

TEST_CASE("zeros keep their sign's rule: a shard without a gradient counts as positive zero at every addition") {
  for (int filled = 0; filled <= 4; ++filled) {
    std::vector<toy::Batch> batches(4);
    for (int k = 0; k < filled; ++k) batches[static_cast<std::size_t>(k)] = {{1}, {1}};
    auto const sign = [&](auto policy) {
      NegativeZero model;
      auto const layout = nn::ParameterLayout::of(model);
      std::vector<float> const start(static_cast<std::size_t>(layout.size()), 1.0f);
      typename decltype(policy)::template Session<NegativeZero, optim::SGD> session(policy, model, layout, start);
      session.micro_step(std::span<toy::Batch const>(batches), {.key = 1});
      session.update(optim::SGD{}, {.step = 1});
      bool negative = false;
      session.for_each_shard([&](int shard, auto& replica) {
        if (shard == 0) negative = std::signbit(replica.gradient_data()[0]);
      });
      return negative;
    };
    CHECK(sign(Reproducible{parallel::SingleDevice{.threads = 1}, 4}) == (filled == 4));
    CHECK(sign(Reproducible{parallel::DataParallel{.devices = 2, .threads = 1}, 4}) == (filled == 4));
    CHECK(sign(parallel::DataParallel{.devices = 4, .threads = 1}) == (filled == 4));
  }
}

TEST_CASE("shards that cannot be divided are refused with the nearest valid number") {
  auto const refused = [](int devices, int shards) {
    try {
      static_cast<void>(Reproducible{parallel::DataParallel{.devices = devices}, shards}.place(0));
    } catch (ConfigError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto const contains = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
  CHECK(refused(2, 8).empty());
  CHECK(refused(8, 8).empty());
  CHECK(contains(refused(2, 6), "6 shards: the number of shards must be a power of two; the nearest is 4"));
  CHECK(contains(refused(2, 7), "the nearest is 8"));
  CHECK(contains(refused(2, -3), "the nearest is 1"));
  CHECK(contains(refused(2, std::numeric_limits<int>::min()), "the nearest is 1"));
  CHECK(contains(refused(3, 8), "the number of ranks or devices, 3, must divide the number of shards; the nearest"));
  CHECK(contains(refused(5, 8), "the nearest that does is 4"));
  CHECK(contains(refused(7, 4), "the nearest that does is 4"));

  CHECK_THROWS_WITH_AS(
      static_cast<void>(parallel::shards_of_device(
          Reproducible{parallel::DistributedDataParallel<comm::SelfCommunicator>{
                           .communicator = comm::SelfCommunicator{}, .gradient_wire = parallel::WireFormat::bfloat16},
                       1})),
      doctest::Contains("Reproducible: gradient_wire bf16: each rank rounds"), ConfigError);

  auto const unlike = [] {
    launch::run({.threads = 2}, [](launch::World& world) {
      Trainer const trainer{Model{}, optim::SGD{}, Reproducible{Ddp{comm::connect(world), 0, 1}, 2 + 2 * world.rank}};
      return 0;
    });
  };
  CHECK_THROWS_WITH_AS(unlike(), doctest::Contains("shards of a micro-step"), CollectiveMismatch);
}

TEST_CASE("the policy keeps its type, with the shards of its devices") {
  static_assert(parallel::ParallelPolicy<Reproducible<parallel::DataParallel>>);
  Reproducible const plain{parallel::DataParallel{.devices = 3}};
  CHECK(plain.shards() == 3);
  CHECK(plain.place(1).shards == 1);
  CHECK(parallel::shards_of_device(parallel::SingleDevice{}) == 1);
  Reproducible const four{parallel::OnCuda{parallel::DataParallel{.devices = 2}}, 4};
  parallel::OnCuda const outside{Reproducible{parallel::DataParallel{.devices = 2}, 4}};
  CHECK(four.shards() == 4);
  CHECK(parallel::shards_of_device(four) == 2);
  for (int device : {0, 1}) {
    CHECK(four.place(device).gpu == device);
    CHECK(outside.place(device).gpu == device);
    CHECK(four.place(device).shards == 2);
    CHECK(outside.place(device).shards == 2);
  }
}
