// SPDX-License-Identifier: Apache-2.0
// Training steps of the text classifier on a GPU: replayed CUDA graphs against kernels queued each time, and a
// prefetched batch against one copied on demand.
#include <optional>
#include <string>
#include <vector>

#include <lockstep/cuda.cuh>
#include <lockstep/parallel/replica/optimizer_state.hpp>

#include <kernel/device_roof.cuh>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

enum class Passes {
  recorded,  ///< after they have been copied back
  queued,    ///< each time, because there is an observer
};
enum class Batches {
  sent_ahead,
  copied,  ///< when they are run
};

class Steps {
 public:
  Steps(Sizes const& sizes, Passes passes, Batches batches)
      : model_(sizes), loader_(batch_of(sizes)), passes_(passes), batches_(batches) {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 1, values.data());
    replica_.set_values(values);
    loader_.use(decltype(replica_)::batch_memory());
    loader_.start({}, 0, 0, 1);
  }

  void step() {
    ++steps_;
    if (!held_) held_.emplace(loader_.next());
    auto const& batch = held_->batches()[0];
    nn::ReadySink listener;
    if (passes_ == Passes::queued) listener.call = [](void*, Index, Index) {};
    replica_.run(batch, {.key = static_cast<std::uint64_t>(steps_)}, {}, listener);
    if (batches_ == Batches::sent_ahead) replica_.prefetch(batch);
    replica_.zero_unused();
    state_.update(optim::AdamW{}, replica_, replica_.loss(), {.step = steps_, .learning_rate = 3e-4});
    static_cast<void>(replica_.read_loss());
  }

 private:
  using Loader = decltype(batch_of(Sizes{}));

  Classifier model_;
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  Loader loader_;
  Passes passes_;
  Batches batches_;
  parallel::Replica<Classifier, CudaSpace> replica_{model_, layout_, {}};
  parallel::OptimizerState<optim::AdamW, CudaSpace> state_{layout_};
  std::optional<Loader::HeldBatches> held_;
  Index steps_ = 0;
};

}  // namespace

void register_benchmarks() {
  auto const add_steps = [](std::string const& name, Sizes const& sizes, Passes passes, Batches batches) {
    Shared const steps([=] { return Steps(sizes, passes, batches); });
    add(name,
        [steps](benchmark::State& state) {
          if (!has_gpu()) return skip(state, "no GPU answers");
          for (int i = 0; i < 10; ++i) steps->step();  // plans and records the batch's shape
          for (auto _ : state) steps->step();
        })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (Index const width : {128, 256}) {
    Sizes const sizes{.width = width, .feed_forward = 2 * width};
    auto const name = "cuda/step/padded/width:" + std::to_string(width);
    add_steps(name, sizes, Passes::recorded, Batches::sent_ahead);
    add_steps(name + "/peer:queued", sizes, Passes::queued, Batches::sent_ahead);
    add_steps(name + "/peer:copied", sizes, Passes::recorded, Batches::copied);
  }
}
