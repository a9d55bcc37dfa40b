// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "malloc_count.hpp"
#include "text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// Number of heap allocations up to each step.
struct Counts : train::Observer {
  std::vector<long> after_step;
  Counts() { after_step.reserve(1000); }
  void step(train::StepReport const&) override { after_step.push_back(lockstep_test::mallocs); }
};

/// Allocations in the fourth epoch of five: the first three have had the largest batch, and another rank may have
/// finished the last.
template <class Policy>
long requests(Policy policy, int accumulation = 1, double clip_norm = 0, train::Trace* trace = nullptr) {
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 3},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 1}};
  Trainer trainer{TextClassifier({.words = 50, .longest = 24}), optim::AdamW{}, std::move(policy)};
  Counts counts;
  trainer.fit(
      loader, train::NoEvaluation{},
      {.epochs = 5, .accumulation = accumulation, .clip_norm = clip_norm, .observers = {&counts}, .trace = trace});
  REQUIRE(counts.after_step.size() >= 10);
  auto const epoch = counts.after_step.size() / 5;
  return counts.after_step[4 * epoch - 1] - counts.after_step[3 * epoch - 1];
}

/// A window of a sensor's signals, and a network of convolutions that classifies it.
struct Window {
  std::array<float, 2 * 32> signals;
};
struct Network {
  nn::Conv1d first{2, 8, {.kernel = 5, .stride = 2, .padding = 2}};
  nn::BatchNorm norm{8, {.activation = nn::Activation::relu}};
  nn::Linear head{8, 3};

  void visit(auto&& each) {
    each("first", first);
    each("norm", norm);
    each("head", head);
  }
  auto predict(auto& context, auto const& batch) const {
    auto const x = context.input(batch[&Window::signals].values.reshape(Extents<3>{batch.rows(), 32, 2}));
    auto const seen = norm.forward(context, first.forward(context, x));
    return head.forward(context, nn::global_average_pool(context, seen));
  }
};

/// Allocations in predictions of one sample at a time, after two of each. Each sample is collated.
template <class Model, class Sample>
long requests_of_predictions(Model model, std::vector<Sample> const& samples) {
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> const values(static_cast<std::size_t>(layout.size()), 0.125F),
      buffers(static_cast<std::size_t>(layout.buffer_size()), 1);
  train::Predictor loaded{std::move(model), values, buffers};
  auto predictor = loaded.share();
  data::Collated batch{data::PadCollate{}, std::vector<Sample>{}};
  long before = 0;
  for (int again = 0; again < 3; ++again) {
    before = lockstep_test::mallocs;
    for (auto const& sample : samples) {
      batch.assign(sample);
      CHECK(predictor.predict(batch.batch()).value.extent[0] == 1);
    }
  }
  return lockstep_test::mallocs - before;
}

}  // namespace

TEST_CASE("the counter counts" * doctest::skip(!lockstep_test::counts_mallocs)) {
  auto const before = lockstep_test::mallocs.load();
  auto const owned = std::make_unique<std::vector<int>>(10);
  void* volatile const aligned = std::aligned_alloc(64, 64);  // clang removes unobservable allocations
  CHECK(lockstep_test::mallocs - before == 3);
  std::free(aligned);
}

// Sanitizers have their own counters: with them this only trains.
TEST_CASE("a training step does not allocate after the largest batch") {
  CHECK(requests(parallel::SingleDevice{.threads = 1}) == 0);
  CHECK(requests(parallel::SingleDevice{.threads = 2}) == 0);
  CHECK(requests(parallel::SingleDevice{.threads = 1}, 3, 0.1) == 0);
  CHECK(requests(parallel::DataParallel{.devices = 2, .threads = 1}) == 0);
  CHECK(requests(parallel::DistributedDataParallel{comm::SelfCommunicator{}, 1024, 1}) == 0);
  CHECK(requests(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}) == 0);
  CHECK(requests(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}, 3, 0.1) == 0);
}

TEST_CASE("a prediction of one sample does not allocate after two of the largest") {
  CHECK(requests_of_predictions(TextClassifier({.words = 50, .longest = 24}), uneven_texts()) == 0);
  CHECK(requests_of_predictions(Network{}, std::vector<Window>(3)) == 0);
}

TEST_CASE("a recorded step does not allocate either" * doctest::skip(!lockstep_test::counts_mallocs)) {
  train::Trace trace({.warm_up = 0, .steps = 1000});
  CHECK(requests(parallel::SingleDevice{.threads = 1}, 1, 0, &trace) == 0);
  CHECK(trace.steps() == 80);
  CHECK(requests(parallel::DistributedDataParallel{comm::SelfCommunicator{}, 1024, 1}, 1, 0, &trace) == 0);
}

TEST_CASE("nor does a step between ranks" * doctest::skip(!lockstep_test::counts_mallocs)) {
  for (bool const shard_optimizer : {false, true}) {
    auto const wire = shard_optimizer ? parallel::WireFormat::bfloat16 : parallel::WireFormat::float32;
    std::vector<long> counted(2, -1);
    launch::run({.threads = 2}, [&](launch::World& world) {
      counted[static_cast<std::size_t>(world.rank)] =
          requests(parallel::DistributedDataParallel{comm::connect(world), 1024, 1, parallel::BufferPolicy::first,
                                                     shard_optimizer, wire},
                   1, shard_optimizer ? 0.1 : 0);
      return 0;
    });
    CHECK(counted == std::vector<long>{0, 0});
  }
}
