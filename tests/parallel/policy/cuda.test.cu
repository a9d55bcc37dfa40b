// SPDX-License-Identifier: Apache-2.0
// Training in both spaces: a small classifier under every policy, from the loader to the parameters.
#include <lockstep/cuda.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_absolute_error.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/gradient.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "memory/device.hpp"
#include "parallel/farthest.hpp"
#include "temporary_folder.hpp"
#include "train/losses.hpp"

using namespace lockstep;

namespace {

constexpr Index words = 30, longest = 7, width = 8, classes = 3, rows = 8;

struct Text {
  std::vector<std::int32_t> tokens;
  int label;
};

/// With a buffer, the logits of the batch's first text, and an unused parameter.
class Classifier {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_), each("head", head_), each("unused", unused_), each("seen", seen_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    auto const logits = head_.forward(context, nn::mean_pool(context, x));
    if (context.recording() && logits.extent(0) > 0) {
      nn::Staging work(context);
      kernel::Copy<typename Context::Space>::run(context.stream(), work.read_real(logits.value).data,
                                                 context.template value<1>(seen_).data, classes);
    }
    return logits;
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = words, .length = longest, .width = width, .dropout = 0.1}};
  nn::Linear head_{width, classes}, unused_{2, 3};
  nn::Buffer seen_{{classes}, nn::Initializer::constant(5)};
};

/// Texts of uneven length, some empty, whose words indicate their class; the last global batch is short.
std::vector<Text> texts() {
  std::vector<Text> all;
  for (std::uint64_t i = 0; i < 27; ++i) {
    auto const draw = [&](std::uint64_t k, int below) {
      return static_cast<std::int32_t>(mix(i, k) % static_cast<std::uint64_t>(below));
    };
    Text text{{}, draw(0, classes)};
    for (int t = 0, length = draw(1, longest + 1); t < length; ++t)
      text.tokens.push_back(10 * text.label + draw(static_cast<std::uint64_t>(t) + 2, 10));
    all.push_back(text);
  }
  return all;
}

/// A loss scale that is initially too large for float16.
constexpr optim::LossScaler too_large{.start = 0x1p19, .growth_interval = 2};

struct Losses final : lockstep_test::Losses {
  std::vector<double> scales, norms;
  std::vector<int> made;
  std::stop_source* asks = nullptr;  // after the fifth step
  void step(train::StepReport const& report) override {
    lockstep_test::Losses::step(report);
    scales.push_back(report.loss_scale);
    norms.push_back(report.gradient_norm);
#if defined(LOCKSTEP_CUDA_EMULATION)
    made.push_back(cuda_emulation::counts.made);
#endif
    if (asks && values.size() == 5) asks->request_stop();
  }
};

struct Outcome {
  std::vector<float> values, buffers;
  std::vector<double> losses;
  train::EvaluationReport evaluation;
  parallel::PhaseSeconds phases;
  std::vector<double> scales;  // after each step
  std::vector<double> norms;   // gradient norm of each step
  double bytes = 0;            // bytes of the first device
  std::vector<parallel::BucketTimes> buckets = {};
  Index rehearsed = 0, replays = 0;
  std::vector<int> made = {};  // recordings and plans after each step
  parallel::DeviceFacts gpu = {};
};

template <class Model = Classifier, class Policy>
Outcome fit(Policy policy, Model model = {}, double learning_rate = 0.1, FitOptions options = {},
            std::stop_source* asks = nullptr, data::PadCollate const& collate = {}) {
  auto const batch = rows / policy.all_shards();
  Trainer trainer(std::move(model), optim::SGD{.learning_rate = learning_rate, .momentum = 0.5}, std::move(policy), 7);
  data::InMemoryDataset const all(texts());
  data::DataLoader loader(all, data::ShuffledSampler{.seed = 3}, collate, {.batch_size = batch / 2});
  data::DataLoader again(all, data::ShuffledSampler{.seed = 4}, data::PadCollate{}, {.batch_size = batch});
  Losses losses;
  losses.asks = asks;
  if (asks) options.stop = asks->get_token();
  options.epochs = std::max<Index>(options.epochs, 2);
  options.accumulation = std::max<Index>(options.accumulation, 2);
  options.clip_norm = 0.5;
  options.observers = {&losses};
  auto const record = trainer.fit(loader, train::Evaluation{again, train::Accuracy{&Text::label}}, options);
  return {{trainer.values().begin(), trainer.values().end()},
          {trainer.buffers().begin(), trainer.buffers().end()},
          losses.values,
          record.evaluations.back(),
          record.phases,
          losses.scales,
          losses.norms,
          static_cast<double>(record.session.peak_bytes_per_device.front()),
          record.session.buckets,
          record.rehearsed_shapes,
          record.work.replays,
          losses.made,
          record.gpu};
}

Outcome fit_on_ranks(int ranks, FitOptions const& fit_options = {}, int shards = 0,
                     data::PadCollate const& collate = {}) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    parallel::OnCuda policy{parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
    outcomes[static_cast<std::size_t>(world.rank)] =
        fit(parallel::Reproducible{std::move(policy), shards}, Classifier(), 0.1, fit_options, nullptr, collate);
    return 0;
  });
  for (auto const& outcome : outcomes) CHECK(outcome.values == outcomes[0].values);
  return outcomes[0];
}

using lockstep_test::farthest;

/// A gradient is some 30 operations on sums of up to 27 terms, each with one rounding: 3 sqrt(30 * 27) halves of a unit
/// of the largest, or 43 units. Clipped, a step's gradient is at most 0.5, its step 0.1 of that and twice as much with
/// momentum: 8 steps differ by 8 * 0.1 * 43 units, and by 1.5 times as much if each step enlarges the error by up to a
/// tenth. The loss's slope is below 1, and it rounds like a gradient.
void check_alike(Outcome const& device, Outcome const& host) {
  double const unit = std::numeric_limits<float>::epsilon(), bound = 1.5 * 8 * 0.1 * 43 * unit;
  CHECK(farthest(device.values, host.values) <= bound);
  CHECK(farthest(device.losses, host.losses) <= bound + 43 * unit * host.losses[0]);
  CHECK(std::abs(device.evaluation.loss - host.evaluation.loss) <= bound + 43 * unit * host.losses[0]);
  CHECK(device.evaluation.samples == 27);
  CHECK(device.evaluation.metrics == host.evaluation.metrics);
  CHECK(device.losses.size() == 8);
  CHECK(device.phases.pass > 0);
  CHECK(device.phases.optimizer > 0);
  CHECK(device.phases.forward + device.phases.backward == 0);
}

}  // namespace

TEST_CASE("training on CUDA ends as the host's within rounding, under every policy") {
  if (!lockstep_test::has_gpu("training")) return;
  using parallel::OnCuda;
  auto const host = fit(parallel::SingleDevice{.threads = 1});
  auto const single = fit(OnCuda{parallel::SingleDevice{}});
  check_alike(single, host);
  CHECK(farthest(single.buffers, host.buffers) <= 100 * std::numeric_limits<float>::epsilon());  // as for the loss
  CHECK(host.buffers[0] != 5);
  CHECK(fit(OnCuda{parallel::SingleDevice{}}).values == single.values);
  for (int n : {2, 4}) {
    CAPTURE(n);
    auto const dp = fit(OnCuda{parallel::DataParallel{.devices = n}});
    auto const ddp = fit_on_ranks(n);
    check_alike(dp, host);
    CHECK(ddp.values == dp.values);
    CHECK(ddp.buffers == dp.buffers);
    CHECK(ddp.losses == dp.losses);
  }
}

TEST_CASE("batches padded to few lengths are replayed in all later epochs, with the host's results within rounding") {
  if (!lockstep_test::has_gpu("replays")) return;
  auto const record = [](auto policy, Index largest_bucket) {
    Trainer trainer{Classifier{}, optim::SGD{.learning_rate = 0.1}, policy, 7};
    data::InMemoryDataset const all(texts());
    data::DataLoader loader(all, data::ShuffledSampler{.seed = 3}, data::PadCollate{.largest_bucket = largest_bucket},
                            {.batch_size = 4});
    return trainer.fit(loader, {.epochs = 4, .shapes_ahead = 0});
  };
  auto const replayed = record(parallel::OnCuda{parallel::SingleDevice{}}, 8);
  CHECK(replayed.work.passes == 4 * 7);
  // Six batches of an epoch are full, and one is short. Each kind has two addresses, and a pass over it is recorded at
  // its second call.
  CHECK(replayed.work.replays == 4 * 7 - 2 * 2);
  CHECK(record(parallel::OnCuda{parallel::SingleDevice{}}, 0).work.replays < replayed.work.replays);
  CHECK(replayed.device_step().kernels > 10);
  auto const host = record(parallel::SingleDevice{.threads = 1}, 0);
  CHECK(host.work.passes == 0);
  double const bound = 28 * 0.1 * 43 * std::numeric_limits<float>::epsilon();  // as in check_alike, for 28 steps
  CHECK(std::abs(replayed.train_loss - host.train_loss) <= bound);
}

TEST_CASE("passes are recorded before the first step with the bits of passes that are recorded later") {
  if (!lockstep_test::has_gpu("recordings before the first step")) return;
  using parallel::OnCuda;
  data::PadCollate const collate{.multiple = 4};
  auto const check = [&](Index shapes, FitOptions options, auto const& fit_with) {
    options.epochs = 12;
    options.evaluate_every_epochs = 12;  // it makes plans, too
    options.shapes_ahead = 0;
    auto const later = fit_with(options);
    options.shapes_ahead = 16;
    auto const ahead = fit_with(options);
    CHECK(ahead.values == later.values);
    CHECK(ahead.buffers == later.buffers);
    CHECK(ahead.losses == later.losses);
    CHECK(ahead.scales == later.scales);
    CHECK(later.rehearsed == 0);
    CHECK(ahead.rehearsed == shapes);
    CHECK(ahead.replays > later.replays);
#if defined(LOCKSTEP_CUDA_EMULATION)
    auto const made = [](Outcome const& outcome) { return outcome.made.back() - outcome.made.front(); };
    CHECK(made(later) > 0);
    if (options.accumulation > 2)  // see `on_ranks`
      CHECK(made(ahead) < made(later));
    else
      CHECK(made(ahead) == 0);  // all recordings and plans precede the second step
#endif
    return ahead;
  };
  auto const on_one = [&](FitOptions const& options) {
    return fit(OnCuda{parallel::SingleDevice{}}, Classifier(), 0.1, options, nullptr, collate);
  };
  auto const whole = check(3, {}, on_one);
  check(4, {}, [&](FitOptions const& options) {
    return fit(OnCuda{parallel::DataParallel{.devices = 2}}, Classifier(), 0.1, options, nullptr, collate);
  });
  check(4, {.loss_scaler = too_large}, [&](FitOptions const& options) {
    return fit(parallel::Reproducible{OnCuda{parallel::SingleDevice{}}, 2}, nn::InFloat16(Classifier()), 0.1, options,
               nullptr, collate);
  });
  // The last step of an epoch has one micro-step, whose pass is of another kind here: it is recorded later.
  FitOptions const on_ranks{.accumulation = 3};
  check(2, on_ranks, [&](FitOptions const& options) { return fit_on_ranks(2, options, 0, collate); });
#if defined(LOCKSTEP_NCCL_EMULATION)
  check(2, on_ranks, [&](FitOptions const& options) {
    std::vector<Outcome> outcomes(2);
    launch::run({.threads = 2}, [&](launch::World& world) {
      cuda_emulation::OwnDevice const device;
      outcomes[static_cast<std::size_t>(world.rank)] =
          fit(OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}}, Classifier(), 0.1,
              options, nullptr, collate);
      return 0;
    });
    return outcomes[0];
  });
#endif
  lockstep_test::TemporaryFolder const folder;
  on_one({.epochs = 12, .max_steps = 9, .evaluate_every_epochs = 12, .checkpoints = {.folder = folder / "saved"}});
  auto const rest = on_one({.epochs = 12,
                            .evaluate_every_epochs = 12,
                            .checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}});
  CHECK(rest.rehearsed == 3);
  CHECK(rest.values == whole.values);
}

TEST_CASE("a trainer destroyed during the copy of its last step's scalars waits for it") {
  if (!lockstep_test::has_gpu("a trainer's end")) return;
  auto const step = [](auto policy) {
    Trainer trainer{nn::InFloat16{Classifier{}}, optim::SGD{.learning_rate = 0.1}, policy, 7};
    data::Collated const part{data::PadCollate{}, texts()};
    std::vector<std::decay_t<decltype(part.batch())>> const batches(static_cast<std::size_t>(policy.shards()),
                                                                    part.batch());
    for (int i = 0; i < 3; ++i) trainer.step(batches, {.clip_norm = 0.5});
  };
  step(parallel::OnCuda{parallel::SingleDevice{}});
  step(parallel::OnCuda{parallel::DataParallel{.devices = 2}});
}

TEST_CASE("manual steps and later fits on CUDA equal the host's within rounding") {
  if (!lockstep_test::has_gpu("steps by hand")) return;
  using parallel::OnCuda;
  auto const train = [](auto policy) {
    optim::SGD const sgd{.learning_rate = 0.1, .momentum = 0.5};
    Trainer trainer(Classifier{}, sgd, policy, 7), other(Classifier{}, sgd, policy, 8);
    auto const all = texts();
    Outcome out;
    for (std::size_t step = 0; step < 6; ++step) {  // batches of several sizes, some of which repeat
      std::vector<data::Collated<data::PadCollate, Text>> parts;
      for (int k = 0; k < policy.shards(); ++k)
        parts.emplace_back(data::PadCollate{},
                           std::vector<Text>(all.begin(), all.begin() + 4 + static_cast<int>(step % 3)));
      std::vector<std::decay_t<decltype(parts[0].batch())>> batches;
      for (auto const& part : parts) batches.push_back(part.batch());
      out.losses.push_back(trainer.step(batches, {.clip_norm = 0.5}).mean());
      out.losses.push_back(trainer.gradient_norm());
      double squares = 0;
      for (auto const& entry : trainer.layout().entries())
        for (float const each : train::gradient(trainer, entry.name))
          squares += static_cast<double>(each) * static_cast<double>(each);
      CHECK(std::sqrt(squares) == doctest::Approx(trainer.gradient_norm()).epsilon(1e-5));
    }
    data::InMemoryDataset const whole(all);
    data::DataLoader loader(whole, data::ShuffledSampler{.seed = 3}, data::PadCollate{}, {.batch_size = 14});
    for (int fit = 0; fit < 2; ++fit) out.losses.push_back(trainer.fit(loader, {.clip_norm = 0.5}).train_loss);
    out.values.assign(trainer.values().begin(), trainer.values().end());
    other.copy_parameters(trainer, 0.5);
    other.copy_parameters(trainer);
    CHECK(std::equal(out.values.begin(), out.values.end(), other.values().begin()));
    CHECK(std::equal(trainer.buffers().begin(), trainer.buffers().end(), other.buffers().begin()));
    return out;
  };
  auto const check = [&](auto policy, auto on_host) {
    auto const device = train(policy), host = train(on_host);
    double const bound = 1.5 * 10 * 0.1 * 43 * std::numeric_limits<float>::epsilon();  // at most ten steps: see above
    CHECK(farthest(device.values, host.values) <= bound);
    CHECK(farthest(device.losses, host.losses) <= bound + 43 * std::numeric_limits<float>::epsilon() * host.losses[0]);
    CHECK(train(policy).values == device.values);
  };
  check(OnCuda{parallel::SingleDevice{}}, parallel::SingleDevice{.threads = 1});
  check(OnCuda{parallel::DataParallel{.devices = 2}}, parallel::DataParallel{.devices = 2, .threads = 1});
}

TEST_CASE("GEMM algorithms chosen by time are equal on all ranks, and a checkpoint stores them") {
  if (!lockstep_test::has_gpu("products chosen by time")) return;
  using parallel::OnCuda;
  auto const on_one = [](FitOptions const& options) {
    return fit(OnCuda{parallel::SingleDevice{}}, Classifier(), 0.1, options);
  };
  lockstep_test::TemporaryFolder const folder;
#if defined(LOCKSTEP_CUDA_EMULATION)
  auto const plain = on_one({});
  cuda_emulation::lt_second_is_fastest = true;
  auto const whole = on_one({.autotune_gemm = true, .shapes_ahead = 0});
  CHECK(whole.losses[0] == plain.losses[0]);  // the first step precedes the choice
  CHECK(whole.values != plain.values);
#endif
  FitOptions const timed{.check_replicas_every = 1, .autotune_gemm = true, .shapes_ahead = 0};
  auto const ddp = fit_on_ranks(2, timed);
  auto const dp = fit(OnCuda{parallel::DataParallel{.devices = 2}}, Classifier(), 0.1, timed);
  on_one({.max_steps = 5, .checkpoints = {.folder = folder / "saved"}, .autotune_gemm = true, .shapes_ahead = 0});
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(ddp.values == dp.values);  // on a GPU two runs may choose differently
  cuda_emulation::lt_second_is_fastest = false;
#endif
  FitOptions const resume{.checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}};
  auto const rest = on_one(resume);
  CHECK(on_one(resume).values == rest.values);
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(rest.values == whole.values);
#endif
}

TEST_CASE("GEMM algorithms are chosen before passes are recorded ahead, and a checkpoint stores them") {
  if (!lockstep_test::has_gpu("products chosen by time before the first step")) return;
  using parallel::OnCuda;
  lockstep_test::TemporaryFolder const folder;
  FitOptions const timed{.epochs = 12, .evaluate_every_epochs = 12, .autotune_gemm = true};
  auto const on_one = [](FitOptions const& options, std::stop_source* asks = nullptr) {
    return fit(OnCuda{parallel::SingleDevice{}}, Classifier(), 0.1, options, asks, {.multiple = 4});
  };
#if defined(LOCKSTEP_CUDA_EMULATION)
  auto const plain = on_one({.epochs = 12, .evaluate_every_epochs = 12});
  cuda_emulation::lt_second_is_fastest = true;
#endif
  auto const whole = on_one(timed);
  CHECK(whole.rehearsed == 3);
  auto const on_ranks = fit_on_ranks(2, timed, 0, {.multiple = 4});  // equal on all ranks
  CHECK(on_ranks.rehearsed > 0);
  auto before = timed;
  before.evaluate_every_epochs = 1;  // it ends after an evaluation
  before.checkpoints = {.folder = folder / "saved"};
  std::stop_source asks;
  on_one(before, &asks);
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(whole.values != plain.values);
  CHECK(whole.replays == plain.replays);           // the choice precedes the recordings
  CHECK(whole.made.back() == whole.made.front());  // and discards none
  cuda_emulation::lt_second_is_fastest = false;
#endif
  auto after = timed;
  after.autotune_gemm = false;
  after.checkpoints = {.resume = train::newest_checkpoint(folder / "saved")};
  auto const rest = on_one(after);
  CHECK(rest.rehearsed == 3);
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(rest.values == whole.values);
#endif
}

TEST_CASE("TF32 changes matrix products of floats slightly") {
  if (!lockstep_test::has_gpu("matrix products in TF32")) return;
  using parallel::MatmulPrecision, parallel::OnCuda;
  auto const exact = fit(OnCuda{parallel::SingleDevice{}});
  auto const rounded = fit(OnCuda{parallel::SingleDevice{}, {}, MatmulPrecision::tf32});
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(rounded.values != exact.values);  // a GPU may have no faster algorithm for such small shapes
#endif
  CHECK(exact.gpu.matmul_precision == "float32");
  CHECK(rounded.gpu.matmul_precision == "tf32");
  REQUIRE(rounded.losses.size() == exact.losses.size());
  for (std::size_t i = 0; i < exact.losses.size(); ++i)  // each product is rounded by at most 2^-9 of its terms
    CHECK(std::abs(rounded.losses[i] - exact.losses[i]) <= 0.02 * std::abs(exact.losses[i]));
}

TEST_CASE("a run records its GPU and the libraries that it used") {
  if (!lockstep_test::has_gpu("facts about a GPU")) return;
  auto const gpu = fit(parallel::OnCuda{parallel::SingleDevice{}}).gpu;
  auto const& libraries = gpu.libraries;
  CHECK_FALSE(gpu.name.empty());
  CHECK(gpu.compute_capability.find('.') != std::string::npos);
  REQUIRE(libraries.size() >= 3);
  CHECK(libraries[0].first == "driver");
  CHECK(libraries[1].first == "cuda");
  CHECK(libraries[2].first == "cublaslt");
  for (auto const& [name, version] : libraries) CHECK(version.find('.') != std::string::npos);
  CHECK(gpu.attention_kernels == "own");
  CHECK(gpu.attention_by_cudnn + gpu.attention_not_by_cudnn == 0);
  CHECK(fit(parallel::SingleDevice{.threads = 1}).gpu.libraries.empty());
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(gpu.name == "Emulated GPU");
  CHECK(gpu.compute_capability == "9.0");
  CHECK(libraries[1].second == "12.4");
  CHECK(libraries[2].second == "13.0.0");
#endif
#if defined(LOCKSTEP_NCCL_EMULATION)
  launch::run({.threads = 1}, [&](launch::World& world) {
    auto const over_nccl = fit(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world)}}).gpu;
    CHECK(over_nccl.libraries.back() == std::pair<std::string, std::string>{"nccl", "2.28.9"});
    return 0;
  });
#endif
}

TEST_CASE("ranks with other kernels or another precision on their GPUs are refused") {
  if (!lockstep_test::has_gpu("training on CUDA")) return;
  using parallel::AttentionKernels, parallel::MatmulPrecision;
  auto const on_two = [](MatmulPrecision precision, AttentionKernels attention) {
    launch::run({.threads = 2}, [&](launch::World& world) {
      bool const first = world.rank == 0;
      fit(parallel::OnCuda{parallel::DistributedDataParallel{comm::connect(world), 256, 1},
                           {},
                           first ? MatmulPrecision::float32 : precision,
                           first ? AttentionKernels::own : attention});
      return 0;
    });
  };
  CHECK_THROWS_WITH_AS(on_two(MatmulPrecision::tf32, AttentionKernels::own),
                       doctest::Contains("matrix products of floats"), CollectiveMismatch);
  CHECK_THROWS_WITH_AS(on_two(MatmulPrecision::float32, AttentionKernels::cudnn),
                       doctest::Contains("attention kernels"), CollectiveMismatch);
}

#if !defined(LOCKSTEP_CUDNN)
TEST_CASE("a policy that wants attention by cuDNN is refused if cuDNN is not linked") {
  if (!lockstep_test::has_gpu("training on CUDA")) return;
  using parallel::AttentionKernels, parallel::MatmulPrecision, parallel::OnCuda;
  CHECK_THROWS_WITH_AS(
      fit(OnCuda{parallel::SingleDevice{}, {}, MatmulPrecision::float32, AttentionKernels::cudnn}),
      doctest::Contains("Attention: cuDNN cannot be used, because this program was built without lockstep::cudnn"),
      ConfigError);
}
#endif

namespace {
/// Trains an optimizer of whole parameters on CUDA as on the host, with equal bits for devices and ranks.
void check_whole_parameters(auto const& optimizer) {
  using parallel::OnCuda;
  auto const train = [&](auto policy) {
    auto const batch = rows / policy.all_shards();
    Trainer trainer{Classifier{}, optimizer, std::move(policy), 7};
    data::InMemoryDataset const all(texts());
    data::DataLoader loader(all, data::ShuffledSampler{.seed = 3}, data::PadCollate{}, {.batch_size = batch});
    Losses losses;
    trainer.fit(loader, {.epochs = 4, .clip_norm = 0.5, .observers = {&losses}});
    return Outcome{.values = {trainer.values().begin(), trainer.values().end()}, .losses = losses.values};
  };
  auto const host = train(parallel::SingleDevice{.threads = 1}), device = train(OnCuda{parallel::SingleDevice{}});
  // An element whose gradient is only rounding moves by the rate in either direction: the losses are compared.
  CHECK(farthest(device.losses, host.losses) <= 1e-3);
  CHECK(train(OnCuda{parallel::SingleDevice{}}).values == device.values);
  auto const dp = train(OnCuda{parallel::DataParallel{.devices = 2}});
  CHECK(farthest(dp.losses, host.losses) <= 1e-3);
  launch::run({.threads = 2}, [&](launch::World& world) {
    auto const ddp = train(OnCuda{parallel::DistributedDataParallel{comm::connect(world)}});
    CHECK(ddp.values == dp.values);
    return 0;
  });
}
}  // namespace

TEST_CASE("optimizers of whole parameters train on CUDA as on the host, with equal bits for devices and ranks") {
  if (!lockstep_test::has_gpu("LAMB and Muon")) return;
  check_whole_parameters(optim::LAMB{.learning_rate = 0.05});
  check_whole_parameters(optim::Partitioned{
      optim::Muon{.learning_rate = 0.02}, optim::AdamW{.learning_rate = 0.005},
      [](std::string_view name, std::span<Index const> shape) { return shape.size() == 2 && name == "head.weight"; }});
}

TEST_CASE("on CUDA, too, Reproducible gives bits that do not depend on the number of replicas") {
  if (!lockstep_test::has_gpu("reproducible training")) return;
  using parallel::OnCuda, parallel::Reproducible;
  auto const expected = fit(OnCuda{parallel::DataParallel{.devices = 4}});
  for (auto const& outcome : {fit(Reproducible{OnCuda{parallel::SingleDevice{}}, 4}),
                              fit(Reproducible{OnCuda{parallel::DataParallel{.devices = 2}}, 4}),
                              fit(OnCuda{Reproducible{parallel::DataParallel{.devices = 2}, 4}}),
                              fit_on_ranks(1, {}, 4), fit_on_ranks(2, {}, 4)}) {
    CHECK(outcome.values == expected.values);
    CHECK(outcome.buffers == expected.buffers);
    CHECK(outcome.losses == expected.losses);
    CHECK(outcome.evaluation.loss == expected.evaluation.loss);
  }
}

namespace {

/// So large that several ranks shard its optimizer: the norm has blocks of 4096, and ranks get whole blocks, of four.
class Large {
 public:
  void visit(auto&& each) { each("embedding", embedding_), each("inner", inner_), each("head", head_); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    return head_.forward(context, nn::relu(context, inner_.forward(context, nn::mean_pool(context, x))));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = words, .length = longest, .width = width, .dropout = 0.1}};
  nn::Linear inner_{width, 1340}, head_{1340, classes};
};

using parallel::WireFormat;

#if defined(LOCKSTEP_NCCL_EMULATION)
auto const on_nccl = [](launch::World& world, auto const& train) {
  cuda_emulation::OwnDevice const device;
  train(comm::NcclCommunicator(world));
};
#endif

template <class Model = Large, class Connect>
std::vector<Outcome> fit_sharded(int ranks, bool shards, Connect const& connect, FitOptions const& options = {},
                                 WireFormat wire = WireFormat::float32, Model const& model = {}) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  launch::run({.threads = ranks}, [&](launch::World& world) {
    connect(world, [&](auto communicator) {
      parallel::OnCuda policy{parallel::DistributedDataParallel{std::move(communicator), 16 << 10, 1,
                                                                parallel::BufferPolicy::first, shards, wire}};
      outcomes[static_cast<std::size_t>(world.rank)] = fit(std::move(policy), model, 0.1, options);
    });
    return 0;
  });
  for (auto const& outcome : outcomes) {
    CHECK(outcome.values == outcomes[0].values);
    CHECK(outcome.bytes == outcomes[0].bytes);
  }
  return outcomes;
}

/// Ranks with this connection shard the optimizer, and end as ranks that do not.
template <class Connect>
void check_sharding(int ranks, Connect const& connect) {
  CAPTURE(ranks);
  auto const whole = fit_sharded(ranks, false, connect)[0], sharded = fit_sharded(ranks, true, connect)[0];
  CHECK(sharded.values == whole.values);
  CHECK(sharded.losses == whole.losses);
  CHECK(sharded.norms == whole.norms);
  CHECK(std::all_of(whole.norms.begin(), whole.norms.end(), [](double norm) { return norm > 0; }));
  int const blocks = (4 + ranks - 1) / ranks;                          // of the rank with most
  CHECK(whole.bytes - sharded.bytes >= 4 * (16'379 - blocks * 4096));  // one number for each parameter

  if (ranks > 2) {
    for (bool const shards : {false, true}) {  // a checkpoint of either resumes with the other
      lockstep_test::TemporaryFolder const folder;
      fit_sharded(ranks, shards, connect, {.max_steps = 3, .checkpoints = {.folder = folder / "saved"}});
      FitOptions const rest{.checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}};
      CHECK(fit_sharded(ranks, !shards, connect, rest)[0].values == whole.values);
    }
    return;
  }

  // Every rank skips steps that overflow.
  nn::InFloat16 const half{Large()};
  FitOptions const overflows{.loss_scaler = too_large};
  auto const all = fit_sharded(ranks, false, connect, overflows, WireFormat::float32, half)[0],
             part = fit_sharded(ranks, true, connect, overflows, WireFormat::float32, half)[0];
  CHECK(part.values == all.values);
  CHECK(part.scales == all.scales);
  CHECK(part.scales[0] < too_large.start);
}

}  // namespace

TEST_CASE("on CUDA ranks over a host engine shard the optimizer, with the bits of ranks that do not") {
  if (!lockstep_test::has_gpu("a sharded optimizer")) return;
  auto const over_host = [](launch::World& world, auto const& train) { train(comm::connect(world)); };
  for (int const ranks : {2, 4}) check_sharding(ranks, over_host);
}

namespace {

/// Its table is so large that ranks of host engines reduce its rows, most of which no text has.
class Wordy {
 public:
  void visit(auto&& each) { each("embedding", embedding_), each("head", head_); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    return head_.forward(context, nn::mean_pool(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = 4200, .length = longest, .width = 16, .dropout = 0.1}};
  nn::Linear head_{16, classes};
};

}  // namespace

TEST_CASE("on CUDA ranks reduce a table by rows over a host engine and over NCCL, with the bits of whole tables") {
  if (!lockstep_test::has_gpu("tables by rows")) return;
  auto const over_host = [](launch::World& world, auto const& train) { train(comm::connect(world)); };
  for (int const ranks : {2, 4}) {
    CAPTURE(ranks);
    bool const shards = ranks == 4;
    auto const whole = fit(parallel::OnCuda{parallel::DataParallel{.devices = ranks}}, Wordy());
    auto const by_rows = fit_sharded<Wordy>(ranks, shards, over_host)[0];
    CHECK(by_rows.values == whole.values);
    CHECK(by_rows.losses == whole.losses);
    auto const table = std::find_if(by_rows.buckets.begin(), by_rows.buckets.end(),
                                    [](auto const& bucket) { return bucket.table_bytes > 0; });
    REQUIRE(table != by_rows.buckets.end());
    CHECK(table->table_bytes == 4200 * 16 * sizeof(float));
    CHECK(table->bytes > 0);
    CHECK(table->bytes <= static_cast<std::size_t>(words * 16) * sizeof(float));
    CHECK(table->end >= table->start);
    CHECK(table->start >= table->ready);
#if defined(LOCKSTEP_NCCL_EMULATION)
    if (ranks > 2) continue;
    auto const over_nccl = fit_sharded<Wordy>(ranks, shards, on_nccl)[0];
    CHECK(over_nccl.values == whole.values);
    CHECK(over_nccl.losses == whole.losses);
    CHECK(std::ranges::any_of(over_nccl.buckets, [&](auto const& bucket) {
      return bucket.table_bytes == table->table_bytes && bucket.bytes == table->bytes;
    }));
#endif
  }
}

TEST_CASE("on CUDA reductions over a host engine are equal if memory cannot be page-locked") {
  if (!lockstep_test::has_gpu("memory that is not page-locked")) return;
  auto const expected = fit_on_ranks(2).values;
#if defined(LOCKSTEP_CUDA_EMULATION)
  cuda_emulation::refuses_page_locks = true;
#endif
  CHECK(fit_on_ranks(2).values == expected);
#if defined(LOCKSTEP_CUDA_EMULATION)
  cuda_emulation::refuses_page_locks = false;
#endif
}

TEST_CASE("on CUDA a 16-bit wire format over a host engine is refused") {
  if (!lockstep_test::has_gpu("a wire format's refusal")) return;
  auto const train = [](launch::World& world) {
    parallel::OnCuda policy{parallel::DistributedDataParallel{
        comm::connect(world), 256, 1, parallel::BufferPolicy::first, false, parallel::WireFormat::bfloat16}};
    fit(parallel::Reproducible{std::move(policy), 0});
    return 0;
  };
  CHECK_THROWS_WITH_AS(launch::run({.threads = 2}, train),
                       doctest::Contains("gradient_wire bf16 with OnCuda over a host engine"), ConfigError);
}

TEST_CASE("a resumed run on CUDA ends with the bits of an uninterrupted one") {
  if (!lockstep_test::has_gpu("a checkpoint of CUDA's")) return;
  auto const check = [](auto const& fit_with) {
    lockstep_test::TemporaryFolder const folder;
    auto const whole = fit_with(FitOptions{});
    fit_with(FitOptions{.max_steps = 5, .checkpoints = {.folder = folder / "saved"}});
    auto const rest = fit_with(FitOptions{.checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}});
    CHECK(rest.values == whole.values);
    CHECK(rest.buffers == whole.buffers);
    CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 5, whole.losses.end()));
    CHECK(rest.evaluation.loss == whole.evaluation.loss);
  };
  using parallel::OnCuda;
  check([](FitOptions const& o) { return fit(OnCuda{parallel::SingleDevice{}}, Classifier(), 0.1, o); });
  check(
      [](FitOptions const& o) { return fit(OnCuda{parallel::SingleDevice{}}, nn::InBfloat16(Classifier()), 0.1, o); });
  check([](FitOptions o) {
    o.loss_scaler = too_large;
    return fit(OnCuda{parallel::DataParallel{.devices = 2}}, nn::InFloat16(Classifier()), 0.1, o);
  });
  check([](FitOptions const& o) { return fit(OnCuda{parallel::DataParallel{.devices = 2}}, Classifier(), 0.1, o); });
  check([](FitOptions const& o) { return fit_on_ranks(2, o); });
}

TEST_CASE_TEMPLATE("in 16 bits, training on CUDA equals the host's in float within rounding", Low,
                   nn::InBfloat16<Classifier>, nn::InFloat16<Classifier>) {
  if (!lockstep_test::has_gpu("training in 16 bits")) return;
  auto const host = fit(parallel::SingleDevice{.threads = 1}, Classifier(), 2);
  auto const low = fit(parallel::OnCuda{parallel::SingleDevice{}}, Low(Classifier()), 2);
  // Eight tensors are rounded on the way to a loss, and again in backward, by at most 2^-8 of themselves and in
  // independent directions. The loss is at most as large as its logits.
  double const part = std::sqrt(16.0) * 0x1p-8;
  CHECK(farthest(low.losses, host.losses) <= part * host.losses[0]);
  CHECK(std::abs(low.evaluation.loss - host.evaluation.loss) <= part * host.losses[0]);
  CHECK(low.losses.back() < low.losses.front());
  CHECK(low.values != host.values);
}

TEST_CASE(
    "in float16, steps on CUDA that overflow are skipped as on the host, recorded passes or not, on every device") {
  if (!lockstep_test::has_gpu("training in float16")) return;
  using parallel::OnCuda;
  using Half = nn::InFloat16<Classifier>;
  FitOptions const options{.loss_scaler = too_large};
  auto const host = fit(parallel::SingleDevice{.threads = 1}, Half(Classifier()), 0.1, options);
  auto const single = fit(OnCuda{parallel::SingleDevice{}}, Half(Classifier()), 0.1, options);
  auto const dp = fit(OnCuda{parallel::DataParallel{.devices = 2}}, Half(Classifier()), 0.1, options);
  auto const shards =
      fit(parallel::Reproducible{OnCuda{parallel::SingleDevice{}}, 2}, Half(Classifier()), 0.1, options);
  std::vector<Outcome> ranks(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    parallel::OnCuda policy{parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
    ranks[static_cast<std::size_t>(world.rank)] = fit(std::move(policy), Half(Classifier()), 0.1, options);
    return 0;
  });
  REQUIRE(host.scales.size() == 8);
  CHECK(host.scales[0] < too_large.start);
  CHECK(host.scales[7] < 0x1p18);
  CHECK(*std::max_element(host.scales.begin() + 4, host.scales.end()) > host.scales[3]);  // it grows again
  for (auto const& outcome : {single, dp, shards, ranks[0], ranks[1]}) CHECK(outcome.scales == host.scales);
  for (auto const& outcome : {shards, ranks[0], ranks[1]}) CHECK(outcome.values == dp.values);
#if defined(LOCKSTEP_NCCL_EMULATION)
  launch::run({.threads = 2}, [&](launch::World& world) {
    cuda_emulation::OwnDevice const device;
    parallel::OnCuda policy{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}};
    ranks[static_cast<std::size_t>(world.rank)] = fit(std::move(policy), Half(Classifier()), 0.1, options);
    return 0;
  });
  for (auto const& outcome : ranks) {
    CHECK(outcome.scales == host.scales);
    CHECK(outcome.values == dp.values);
  }
#endif
}

namespace {

struct Point {
  float x, y;
};
class Line {
 public:
  void visit(auto&& each) { each("map", map_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return nn::mean_squared_error(context, map_.forward(context, x), batch[&Point::y]);
  }

 private:
  nn::Linear map_{1, 1};
};

/// Its gradient is four times x, whatever its loss.
class Steep {
 public:
  void visit(auto&& each) { each("map", map_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return nn::mean_absolute_error(context, map_.forward(context, x), batch[&Point::y], {.factor = 4});
  }

 private:
  nn::Linear map_{1, 1};
};

/// The error message of a run with a non-finite number in its second step, if the shard `bad` has this point.
template <class Model = Line, class Policy>
std::string end_of(Policy policy, int bad, Point const& point = {1, std::nanf("")}, FitOptions const& options = {}) {
  auto const shards = policy.all_shards();
  std::vector<Point> points(static_cast<std::size_t>(2 * shards), Point{1, 2});
  points[static_cast<std::size_t>(shards + bad)] = point;
  data::DataLoader loader{
      data::InMemoryDataset{points}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 1}};
  Trainer trainer{Model{}, optim::SGD{.learning_rate = 0.1}, std::move(policy)};
  try {
    trainer.fit(loader, options);
  } catch (Error const& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a non-finite loss on one rank or device names it on CUDA, too, and no other") {
  if (!lockstep_test::has_gpu("a loss that is no number")) return;
  auto const message = [](std::string const& where, int sample) {
    return "training: the loss of step 2 is nan on " + where + " and nowhere else; sample " + std::to_string(sample) +
           " holds an infinity or a NaN in its member 1";
  };
  for (int bad : {1, 2})
    CHECK(end_of(parallel::OnCuda{parallel::DataParallel{.devices = 3}}, bad)
              .starts_with(message("device " + std::to_string(bad), 3 + bad)));
  auto const on_ranks = [&](auto const& connect) {
    std::vector<std::string> ends(2);
    launch::run({.threads = 2}, [&](launch::World& world) {
      ends[static_cast<std::size_t>(world.rank)] = connect(world);
      return 0;
    });
    for (auto const& end : ends) CHECK(end.starts_with(message("rank 1", 3)));
  };
  on_ranks([](launch::World& world) {
    return end_of(parallel::OnCuda{parallel::DistributedDataParallel{comm::connect(world), 256, 1}}, 1);
  });
#if defined(LOCKSTEP_NCCL_EMULATION)
  on_ranks([](launch::World& world) {
    cuda_emulation::OwnDevice const device;
    return end_of(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}}, 1);
  });
#endif
}

TEST_CASE("a non-finite gradient, if it is clipped, ends the run on CUDA, too") {
  if (!lockstep_test::has_gpu("a gradient that is no number")) return;
  auto const check = [](auto policy) {
    auto const end = end_of<Steep>(std::move(policy), 0, {1e38f, 2}, {.clip_norm = 1});
    CHECK_MESSAGE(end.starts_with("training: the gradient of step 2 is not finite, although the loss is "), end);
  };
  check(parallel::OnCuda{parallel::SingleDevice{}});
  check(parallel::OnCuda{parallel::DataParallel{.devices = 2}});
  launch::run({.threads = 2}, [&](launch::World& world) {
    check(parallel::OnCuda{parallel::DistributedDataParallel{comm::connect(world), 256, 1}});
    return 0;
  });
#if defined(LOCKSTEP_NCCL_EMULATION)
  launch::run({.threads = 2}, [&](launch::World& world) {
    cuda_emulation::OwnDevice const device;
    check(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}});
    return 0;
  });
#endif
}

#if defined(LOCKSTEP_NCCL_EMULATION)

TEST_CASE("the bits do not depend on which replicas share a GPU") {
  parallel::DataParallel const policy{.devices = 4};
  auto const on_one = fit(parallel::OnCuda{policy});
  cuda_emulation::devices = 2;
  CHECK(fit(parallel::OnCuda{policy, {0, 1, 1, 1}}).values == on_one.values);  // adjacent ones separate, and together
  cuda_emulation::devices = 1;
}

TEST_CASE("replicas that copy the first one's values have them before its memory is freed") {
  cuda_emulation::devices = 2;
  {
    Trainer trainer(Line{}, optim::SGD{.learning_rate = 0.1},
                    parallel::OnCuda{parallel::DataParallel{.devices = 2}, {0, 1}});
    data::Collated const points{data::PadCollate{}, std::vector<Point>{{1, 2}}};
    trainer.step(std::vector{points.batch(), points.batch()}, {});
  }
  cuda_emulation::devices = 1;
  cuda_emulation::current_device = 0;
}

TEST_CASE("gradients reduced by NCCL on the device have the bits of gradients reduced over the host") {
  auto const over_host = fit_on_ranks(2);  // two numbers have one sum, in any order
  auto const over_nccl = [](FitOptions const& options, bool one_asks = false) {
    std::vector<Outcome> outcomes(2);
    std::stop_source source;
    launch::run({.threads = 2}, [&](launch::World& world) {
      cuda_emulation::OwnDevice const device;
      outcomes[static_cast<std::size_t>(world.rank)] =
          fit(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}}, Classifier(),
              0.1, options, one_asks && world.rank == 1 ? &source : nullptr);
      return 0;
    });
    return outcomes;
  };
  for (auto const& outcome : over_nccl({})) {
    CHECK(outcome.values == over_host.values);
    CHECK(outcome.losses == over_host.losses);
  }
  lockstep_test::TemporaryFolder const folder;
  over_nccl({.max_steps = 3, .checkpoints = {.folder = folder / "saved"}});
  for (auto const& outcome : over_nccl({.checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}}))
    CHECK(outcome.values == over_host.values);
  for (auto const& outcome : over_nccl({.checkpoints = {.folder = folder / "asked"}}, true))
    CHECK(outcome.losses == std::vector<double>(over_host.losses.begin(), over_host.losses.begin() + 6));
  for (auto const& outcome : over_nccl({.checkpoints = {.resume = train::newest_checkpoint(folder / "asked")}}))
    CHECK(outcome.values == over_host.values);
}

TEST_CASE("ranks over NCCL shard the optimizer, with the bits of ranks that do not") {
  for (int const ranks : {2, 3}) check_sharding(ranks, on_nccl);  // the emulation adds in the order of ranks
  auto const whole = fit_sharded(2, false, on_nccl, {}, WireFormat::bfloat16)[0],
             sharded = fit_sharded(2, true, on_nccl, {}, WireFormat::bfloat16)[0];
  CHECK(sharded.values == whole.values);
  CHECK(sharded.losses == whole.losses);
  auto const over_host = [](launch::World& world, auto const& train) { train(comm::connect(world)); };
  CHECK(fit_sharded(2, true, over_host)[0].values == fit_sharded(2, true, on_nccl)[0].values);
}

namespace {

/// Two tables with gradients by rows, and other parameters between them.
struct TwoTables {
  nn::Embedding words{70, 5}, names{200, 3};
  nn::Linear head{2, 3};
  void visit(auto&& each) { each("words", words), each("head", head), each("names", names); }
};

/// Gradients of TwoTables on one rank: one arena's tables are summed by rows, the other arena is summed whole.
struct RowsAndWhole {
  struct Arena {
    memory::Block memory;
    parallel::detail::GradientWire<CudaSpace> wire;

    Arena(RowsAndWhole& self, ElementType type)
        : memory(self.communicator.allocate(self.size * sizeof(float))),
          wire(type, data(),
               type == ElementType::float32 ? memory::Block() : self.communicator.allocate(self.size * size_of(type)),
               self.stream.view()) {}
    [[nodiscard]] float* data() const { return reinterpret_cast<float*>(memory.data()); }
  };

  comm::NcclCommunicator communicator;
  TwoTables model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::size_t size = static_cast<std::size_t>(layout.size());
  memory::CudaStream stream;
  memory::CudaEvent ready;
  Arena by_rows, whole;
  parallel::detail::DeviceRows<CudaSpace> table_rows;

  RowsAndWhole(launch::World const& world, ElementType type)
      : communicator(world),
        by_rows(*this, type),
        whole(*this, type),
        table_rows(communicator, layout, by_rows.wire, by_rows.data(), stream.view(), 1) {
    table_rows.load_kernels();
  }

  /// Writes numbers of this rank to rows with touched(table, row), and zeros elsewhere.
  template <class Touched>
  void fill(std::uint64_t step, Touched const& touched) {
    std::vector<float> host(size);
    for (std::size_t t = 0; t < 2; ++t) {
      auto const& table = table_rows.tables()[t];
      for (Index at = table.offset; at < table.end(); ++at) {
        if (!touched(t, (at - table.offset) / table.width)) continue;
        auto const draw =
            mix(static_cast<std::uint64_t>(at), 10 * step + static_cast<std::uint64_t>(communicator.rank()));
        host[static_cast<std::size_t>(at)] = draw % 9 == 0 ? -0.0f : static_cast<float>(draw % 2001) / 1e3f - 1;
      }
    }
    for (auto const* const arena : {&by_rows, &whole}) copy(arena->data(), host.data(), cudaMemcpyHostToDevice);
    table_rows.find();
    ready.record(stream.view());
  }
  void gather() { table_rows.gather(communicator, ready); }
  void finish() {
    communicator.finish();
    table_rows.finish();
  }
  /// Sums the other arena, and returns whether the tables' bits are equal in both.
  [[nodiscard]] bool has_sums_of_whole_tables() {
    parallel::detail::ArenaPart const all{0, layout.size()};
    whole.wire.round(all);
    ready.record(stream.view());
    comm::CollectiveOperation operation{whole.wire.type(), whole.wire.at(0), all.end};
    communicator.start_after(operation, ready);
    communicator.finish();
    whole.wire.widen(all);
    std::vector<float> a(size), b(size);
    copy(a.data(), by_rows.data(), cudaMemcpyDeviceToHost);
    copy(b.data(), whole.data(), cudaMemcpyDeviceToHost);
    return std::memcmp(a.data(), b.data(), size * sizeof(float)) == 0;
  }

 private:
  void copy(float* to, float const* from, cudaMemcpyKind kind) const {
    memory::check_cuda(cudaMemcpyAsync(to, from, size * sizeof(float), kind, stream.view().get()), "cudaMemcpyAsync");
    stream.view().synchronize();
  }
};

}  // namespace

TEST_CASE("over NCCL the rows that any rank has touched are summed, with the bits of whole tables") {
  // Whether a rank touches a row of a table; table 0 has 200 rows, and table 1 has 70.
  using Touched = bool (*)(int rank, std::size_t table, Index row);
  struct Step {
    Touched touched;
    std::array<int, 2> rows;  // summed, on 3 ranks
  };
  Step const steps[] = {
      {[](int, std::size_t, Index) { return false; }, {0, 0}},
      {[](int rank, std::size_t, Index row) { return rank == 0 && row % 64 == 3; }, {4, 2}},
      {[](int rank, std::size_t t, Index row) { return row == rank || row == (t == 0 ? 199 : 69); }, {4, 4}},
      {[](int rank, std::size_t t, Index row) { return t == 1 || row == 10 + 7 * rank; }, {3, 70}},
      {[](int rank, std::size_t t, Index row) { return t == 1 ? rank == 1 && row % 2 == 0 : row >= 100; }, {100, 35}},
      {[](int rank, std::size_t t, Index row) { return t == 1 ? row % 2 == 0 || rank == 2 : row > 98; }, {200, 70}},
  };
  for (auto const type : {ElementType::float32, ElementType::bfloat16, ElementType::float16}) {
    auto const loads = cuda_emulation::loads_beside_peers.load();
    std::atomic<std::uint64_t> packed{0};  // last step whose rows rank 0 has packed
    launch::run({.threads = 3}, [&](launch::World& world) {
      cuda_emulation::OwnDevice const device;
      RowsAndWhole gradients(world, type);
      auto& communicator = gradients.communicator;
      auto const loss = communicator.allocate(sizeof(double));
      std::uint64_t number = 0;
      for (auto const& step : steps) {
        ++number;
        CAPTURE(number);
        gradients.fill(number, [&](std::size_t t, Index row) { return step.touched(world.rank, t, row); });
        gradients.gather();
        while (world.rank > 0 && packed < number) communicator.progress();  // rank 0 packs while another sum waits
        comm::CollectiveOperation sum{ElementType::float64, loss.data(), 1};
        communicator.start(sum);
        gradients.table_rows.start(communicator);
        if (world.rank == 0) packed = number;
        gradients.finish();
        CHECK(gradients.has_sums_of_whole_tables());
        std::vector<parallel::BucketTimes> times;
        gradients.table_rows.add_times(times);
        REQUIRE(times.size() == 2);
        for (std::size_t t = 0; t < 2; ++t) {
          auto const of_row = static_cast<std::size_t>(gradients.table_rows.tables()[t].width) * size_of(type);
          CHECK(times[t].table_bytes == (t == 0 ? 200 : 70) * of_row);
          CHECK(times[t].bytes == static_cast<std::size_t>(step.rows[t]) * of_row);
          CHECK((times[t].end >= times[t].start && times[t].start >= (times[t].bytes > 0 ? times[t].ready : 0)));
        }
      }
      return 0;
    });
    CHECK(cuda_emulation::loads_beside_peers == loads);
  }
}

TEST_CASE("over NCCL a rank that fails before or after the exchange of touched rows is named") {
  for (bool const gathers : {false, true}) {
    CAPTURE(gathers);
    std::string text;
    auto const train = [&](launch::World& world) {
      cuda_emulation::OwnDevice const device;
      RowsAndWhole gradients(world, ElementType::float32);
      gradients.fill(0, [](std::size_t, Index row) { return row == 1; });
      if (world.rank == 0 || gathers) gradients.gather();
      if (world.rank == 1) {
        gradients.communicator.finish();
        throw std::domain_error("the GPU is on fire");
      }
      try {
        gradients.table_rows.start(gradients.communicator);
        gradients.finish();
      } catch (CommunicationError const& error) {
        text = error.what();
        throw;
      }
      return 0;
    };
    CHECK_THROWS_AS(launch::run({.threads = 2}, train), std::domain_error);
    CAPTURE(text);
    CHECK(text.find("rank 1 failed: the GPU is on fire") != std::string::npos);
    CHECK(text.find(gathers ? "(all_reduce of 3 float32" : "(all_gather of 48 bytes") != std::string::npos);
  }
}

TEST_CASE("a run over NCCL that sums a table by rows is resumed by ranks that sum it whole, with equal bits") {
  auto const run = [](bool shards, FitOptions const& options) {  // a sharded optimizer reduce-scatters whole tables
    return fit_sharded<Wordy>(2, shards, on_nccl, options, WireFormat::bfloat16)[0];
  };
  auto const has_table = [](Outcome const& outcome) {
    return std::ranges::any_of(outcome.buckets, [](auto const& bucket) { return bucket.table_bytes > 0; });
  };
  lockstep_test::TemporaryFolder const folder;
  auto const by_rows = run(false, {.max_steps = 2});
  run(false, {.max_steps = 1, .checkpoints = {.folder = folder / "saved"}});
  auto const rest = run(true, {.max_steps = 2, .checkpoints = {.resume = train::newest_checkpoint(folder / "saved")}});
  CHECK(rest.values == by_rows.values);
  CHECK(has_table(by_rows));
  CHECK_FALSE(has_table(rest));
}

TEST_CASE("on a 16-bit wire NCCL sums rounded gradients, in recorded passes and in others") {
  auto const over_nccl = [](parallel::WireFormat wire, auto const& model, FitOptions const& options) {
    std::vector<Outcome> outcomes(2);
    launch::run({.threads = 2}, [&](launch::World& world) {
      cuda_emulation::OwnDevice const device;
      parallel::OnCuda policy{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1,
                                                                parallel::BufferPolicy::first, false, wire}};
      outcomes[static_cast<std::size_t>(world.rank)] = fit(std::move(policy), model, 0.1, options);
      return 0;
    });
    CHECK(outcomes[0].values == outcomes[1].values);
    CHECK(outcomes[0].scales == outcomes[1].scales);
    return outcomes[0];
  };
  // A gradient of at most 0.5, as it is clipped, is rounded twice by `part` of itself; a step is 0.1 of it and twice as
  // much with momentum, there are 8, and their difference affects the next gradients, as in check_alike.
  auto const bound = [](double part) { return 1.5 * 8 * 0.1 * 2 * 2 * 0.5 * part; };
  using enum parallel::WireFormat;
  auto const exact = over_nccl(float32, Classifier(), {}), rounded = over_nccl(bfloat16, Classifier(), {});
  CHECK(rounded.values != exact.values);
  CHECK(farthest(rounded.values, exact.values) <= bound(0x1p-9));

  nn::InFloat16 const half{Classifier()};
  FitOptions const fits{.loss_scaler = {.start = 0x1p10}}, overflows{.loss_scaler = too_large};
  auto const scaled = over_nccl(float32, half, fits), scaled_and_rounded = over_nccl(float16, half, fits);
  CHECK(scaled_and_rounded.scales == std::vector<double>(8, 0x1p10));
  CHECK(scaled_and_rounded.values != scaled.values);
  CHECK(farthest(scaled_and_rounded.values, scaled.values) <= bound(0x1p-9));
  auto const skips = over_nccl(float16, half, overflows);
  CHECK(skips.scales[0] < too_large.start);
  CHECK(std::all_of(skips.values.begin(), skips.values.end(), [](float value) { return std::isfinite(value); }));
}

namespace {

/// Its second half's gradients fill a bucket before other kernels compute the first half's.
class Deep {
 public:
  explicit Deep(Index inner = 64) : first_(1, inner), second_(inner, 1) {}
  void visit(auto&& each) { each("first", first_), each("second", second_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    auto const y = second_.forward(context, nn::relu(context, first_.forward(context, x)));
    return nn::mean_squared_error(context, y, batch[&Point::y]);
  }

 private:
  nn::Linear first_, second_;
};

}  // namespace

TEST_CASE("no kernel is loaded on a GPU while an all-reduce may wait there for peers, also not in the first pass") {
  auto const loads = cuda_emulation::loads_beside_peers.load();
  for (bool const shards : {false, true})
    for (auto const wire : {parallel::WireFormat::float32, parallel::WireFormat::bfloat16})
      launch::run({.threads = 2}, [&](launch::World& world) {
        cuda_emulation::OwnDevice const device;
        parallel::OnCuda policy{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1,
                                                                  parallel::BufferPolicy::first, shards, wire}};
        Trainer trainer(Deep{shards ? 10'000 : 64}, optim::SGD{.learning_rate = 0.1}, std::move(policy));
        data::Collated const points{data::PadCollate{}, std::vector<Point>{{1, 2}}};
        for (int step = 0; step < 2; ++step) trainer.step(std::vector{points.batch()}, {.clip_norm = 1});
        return 0;
      });
  CHECK(cuda_emulation::loads_beside_peers == loads);  // loading may wait for the whole GPU
}

namespace {

/// A host engine that calls `on_start(operation)` when an operation starts.
template <class OnStart>
struct ObservedCommunicator {
  comm::AnyCommunicator engine;
  OnStart on_start;

  [[nodiscard]] int rank() const { return engine.rank(); }
  [[nodiscard]] int size() const { return engine.size(); }
  [[nodiscard]] char const* name() const { return engine.name(); }
  [[nodiscard]] memory::Block allocate(std::size_t bytes) { return engine.allocate(bytes); }
  void start(comm::CollectiveOperation& operation) {
    on_start(operation);
    engine.start(operation);
  }
  void progress() { engine.progress(); }
  void wait(comm::CollectiveOperation const& operation) { engine.wait(operation); }
  void finish() { engine.finish(); }
  [[nodiscard]] ObservedCommunicator split(int color, int key) { return {engine.split(color, key), on_start}; }
};

}  // namespace

TEST_CASE("a host engine reduces a bucket while the GPU computes the gradients of others, recorded or not") {
  constexpr int steps = 300;  // so many that some overlap on a busy machine, too
  std::array<int, 2> overlapped{};
  launch::run({.threads = 2}, [&](launch::World& world) {
    float const* last = nullptr;  // last gradient that backward writes: NaN before
    bool is_early = false;
    auto const on_start = [&](comm::CollectiveOperation const& operation) {
      if (last && !operation.piggybacked_scalars.empty()) is_early = std::isnan(*last);
    };
    parallel::OnCuda policy{parallel::DistributedDataParallel{
        ObservedCommunicator<decltype(on_start)>{comm::connect(world), on_start}, 256, 1}};
    Deep model;
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<float> values(static_cast<std::size_t>(layout.size()), 0.25f);
    typename decltype(policy)::template Session<Deep, optim::SGD> session(policy, model, layout, values);
    data::Collated const points{data::PadCollate{}, std::vector<Point>{{1, 2}}};
    std::vector const batches{points.batch()};
    memory::CudaStream const filling;
    std::span<float> gradients;
    session.for_each_shard([&](int, auto& replica) {
      gradients = {replica.gradient_data(), static_cast<std::size_t>(layout.size())};
    });
    last = gradients.data() + layout.entries().front().offset;
    for (Index step = 1; step <= steps; ++step) {
      // On its own stream: the other rank may be recording, and then no thread may wait for the whole device.
      memory::check_cuda(cudaMemsetAsync(gradients.data(), 0xff, gradients.size_bytes(), filling.view().get()),
                         "cudaMemsetAsync");
      filling.view().synchronize();
      session.micro_step(std::span(batches), {});
      auto const loss = session.update(optim::SGD{}, {.step = step, .learning_rate = 0x1p-20});
      CHECK(loss.weight == 2);
      CHECK(std::isfinite(session.values()[static_cast<std::size_t>(layout.entries().front().offset)]));
      if (world.rank == 0) overlapped[step > steps / 2] += is_early;
    }
    return 0;
  });
  CHECK(overlapped[0] > 0);
  CHECK(overlapped[1] > 0);
}

TEST_CASE("a rank that fails while NCCL works waits for no rank, and ends") {
  auto const frees = cuda_emulation::frees_beside_peers.load();
  auto const aborted = nccl_emulation::Registry::instance().aborted.load();
  std::atomic<bool> is_under_way{false};
  auto const train = [&](launch::World& world) -> int {
    cuda_emulation::OwnDevice const device;
    parallel::OnCuda policy{parallel::DistributedDataParallel{comm::NcclCommunicator(world), 256, 1}};
    Line model;
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<float> const values(static_cast<std::size_t>(layout.size()));
    decltype(policy)::Session<Line, optim::SGD> session(policy, model, layout, values);
    data::Collated const points{data::PadCollate{}, std::vector<Point>{{1, 2}}};
    std::vector const batches{points.batch()};
    while (world.rank == 1 && !is_under_way) std::this_thread::yield();
    if (world.rank == 0) session.micro_step(std::span(batches), {});
    is_under_way = true;
    throw std::domain_error("rank " + std::to_string(world.rank));
  };
  CHECK_THROWS_AS(launch::run({.threads = 2}, train), std::domain_error);
  CHECK(cuda_emulation::frees_beside_peers == frees);
  CHECK(nccl_emulation::Registry::instance().aborted > aborted);
}

TEST_CASE("a replica is on the communicator's GPU, and on no other") {
  cuda_emulation::devices = 2;
  launch::World const world;
  auto const single = fit(parallel::OnCuda{parallel::SingleDevice{}, {1}});
  CHECK(fit(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world, 1), 256, 1}}).values ==
        single.values);
  CHECK_THROWS_WITH_AS(
      fit(parallel::OnCuda{parallel::DistributedDataParallel{comm::NcclCommunicator(world, 1), 256, 1}, {0}}),
      doctest::Contains("the communicator is on GPU 1, and OnCuda puts the replica on GPU 0"), ConfigError);
  cuda_emulation::devices = 1;
  cuda_emulation::current_device = 0;
}

/// A million parameters that learn nothing.
struct Wide {
  nn::Linear layer{1023, 1024};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    return layer.forward(context, batch);
  }
  template <class Context>
  nn::LossOf<Context> loss(Context&, auto const&, auto const&) const {
    return {};
  }
};

TEST_CASE("insufficient GPU memory for the parameters is reported before any allocation") {
  using parallel::OnCuda;
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  cuda_emulation::devices = 2;
  auto const used = [](int gpu) { return cuda_emulation::Memory::instance().bytes_of(gpu); };
  auto const before = used(0);
  auto const refused = [](auto policy) {
    Trainer const trainer(Wide(), optim::SGD{.momentum = 0.5}, std::move(policy));
  };
  cuda_emulation::memory_bytes = before + 11 * mebibyte;
  CHECK_THROWS_WITH_AS(
      refused(OnCuda{parallel::SingleDevice{}}),
      doctest::Contains("Trainer: 1048576 parameters need at least 12 MiB of memory of GPU 0 before the first batch, "
                        "for values, gradients, 1 optimizer moment, but "),
      ConfigError);
  CHECK_THROWS_WITH_AS(refused(OnCuda{parallel::DataParallel{.devices = 2}, {1, 0}}), doctest::Contains("of GPU 1 "),
                       ConfigError);
  cuda_emulation::memory_bytes = before + 19 * mebibyte;
  CHECK_THROWS_WITH_AS(refused(OnCuda{parallel::DataParallel{.devices = 2}, {0}}),
                       doctest::Contains("Trainer: 2 replicas of 1048576 parameters need at least 20 MiB of memory of"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(refused(OnCuda{parallel::DataParallel{.devices = 2}, {0}}),
                       doctest::Contains("use one GPU for each replica"), ConfigError);
  CHECK(used(0) == before);
  cuda_emulation::taken = 1;
  for (auto const* const part : {"cudaSetDevice(0): out of memory", "; other processes may use this GPU's memory"})
    CHECK_THROWS_WITH_AS(refused(OnCuda{parallel::SingleDevice{}, {0}}), doctest::Contains(part), CudaError);
  cuda_emulation::taken = 0;
  cuda_emulation::memory_bytes = before + 40 * mebibyte;
  CHECK_NOTHROW(refused(OnCuda{parallel::SingleDevice{}}));
  CHECK(used(0) == before);
  cuda_emulation::memory_bytes = 0;
  cuda_emulation::devices = 1;
  cuda_emulation::current_device = 0;
}

TEST_CASE("activations that exceed the memory of a GPU are reported") {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  cuda_emulation::memory_bytes = cuda_emulation::Memory::instance().bytes_of(0) + 20 * mebibyte;
  {
    memory::CudaStream const stream;
    nn::Context<float, CudaSpace> context(stream.view());
    static_cast<void>(context.temporary<float>(Extents<1>{Index{3} << 20}));
    CHECK_THROWS_WITH_AS(static_cast<void>(context.temporary<float>(Extents<1>{Index{4} << 20})),
                         doctest::Contains("activations of a batch, 12 MiB so far, need 16 MiB more: cudaMalloc of "),
                         CudaError);
  }
  cuda_emulation::memory_bytes = 0;
}
#endif
