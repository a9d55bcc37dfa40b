// SPDX-License-Identifier: Apache-2.0
// Time of whole training steps on a GPU, one row each: step_points [--profile] [PART OF A NAME…]. peers/gpu_points.py
// has the same rows. A row is the wall time of forward, backward and AdamW, including the loss's way to the host. Each
// row is preceded by one with the first ten steps, which plan and record the batch's shape. --profile runs one step of
// each model between cudaProfilerStart and cudaProfilerStop, for a profiler that starts later.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <cuda_profiler_api.h>

#include <lockstep/cuda.cuh>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>

#include <gpu/points.cuh>
#include <train/classifier.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

enum class Measure { time, profile };

template <class Model>
class Steps {
 public:
  Steps(Model model, Sizes const& sizes) : model_(std::move(model)), loader_(batch_of(sizes)) {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 1, values.data());
    replica_.set_values(values);
    loader_.use(decltype(replica_)::batch_memory());
    loader_.start({}, 0, 0, 1);
    held_.emplace(loader_.next());
  }

  void step() {
    ++steps_;
    auto const& batch = held_->batches()[0];
    replica_.run(batch, {.key = static_cast<std::uint64_t>(steps_)}, {}, nn::ReadySink{});
    replica_.prefetch(batch);
    replica_.zero_unused();
    state_.update(optim::AdamW{}, replica_, replica_.loss(), {.step = steps_, .learning_rate = 3e-4});
    static_cast<void>(replica_.read_loss());
  }

 private:
  using Loader = decltype(batch_of(Sizes{}));

  Model model_;
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  Loader loader_;
  parallel::Replica<Model, CudaSpace> replica_{model_, layout_, {}};
  parallel::OptimizerState<optim::AdamW, CudaSpace> state_{layout_};
  std::optional<typename Loader::HeldBatches> held_;
  Index steps_ = 0;
};

template <class Model>
void measure(Filter const& filter, std::string const& name, Model model, Sizes const& sizes, Measure how) {
  if (!filter.selects("step " + name)) return;
  guarded("step " + name, [&] {
    Steps<Model> steps(std::move(model), sizes);
    auto const microseconds = [&](int count) {
      auto const start = Clock::seconds();
      for (int i = 0; i < count; ++i) steps.step();
      return (Clock::seconds() - start) / count * 1e6;
    };
    auto const first = microseconds(10);
    if (how == Measure::profile) {
      memory::check_cuda(cudaProfilerStart(), "cudaProfilerStart");
      steps.step();
      memory::check_cuda(cudaProfilerStop(), "cudaProfilerStop");
      return;
    }
    print_row("first ten steps " + name, "lockstep", first);
    auto const count = std::max(5, std::min(100, static_cast<int>(2e5 / microseconds(3))));
    std::vector<double> rounds;
    for (int round = 0; round < 5; ++round) rounds.push_back(microseconds(count));
    std::sort(rounds.begin(), rounds.end());
    print_row("step " + name, "lockstep", rounds[rounds.size() / 2]);
  });
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "step_points: no GPU is available\n");
    return 1;
  }
  auto const how = argc > 1 && std::strcmp(argv[1], "--profile") == 0 ? Measure::profile : Measure::time;
  int const options = how == Measure::profile ? 1 : 0;
  Filter const filter(argc - options, argv + options);
  struct Case {
    char const* name;
    Sizes sizes;
  };
  Case const cases[] = {
      {"d128 b32", {}},
      {"d128 b32 unequal", {.rows = Rows::unequal}},
      {"d128 b256", {.batch = 256}},
      {"d256 b32", {.width = 256, .feed_forward = 512}},
      {"d256 b256", {.width = 256, .feed_forward = 512, .batch = 256}},
      {"imdb b128", {.width = 256, .layers = 4, .heads = 8, .feed_forward = 1024, .length = 256, .batch = 128}},
      {"bert b32", {.vocabulary = 30522, .width = 768, .layers = 12, .heads = 12, .feed_forward = 3072}},
  };
  for (auto const& [name, sizes] : cases) {
    measure(filter, std::string(name) + " float", Classifier(sizes), sizes, how);
    measure(filter, std::string(name) + " bf16", nn::InBfloat16<Classifier>(Classifier(sizes)), sizes, how);
  }
}
