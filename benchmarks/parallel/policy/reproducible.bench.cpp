// SPDX-License-Identifier: Apache-2.0
// Cost of results that do not depend on the number of devices, on one device: steps of the text classifier on 32 texts
// in shards, against steps on all texts at once. One thread each, in samples per second of processor time.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <rate.hpp>
#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

/// Trains on the same texts repeatedly, in a given number of shards.
template <class Collate>
class Trained {
  using Policy = parallel::Reproducible<parallel::SingleDevice>;

 public:
  Trained(Sizes const& sizes, int shards)
      : samples_(sizes.batch),
        policy_{parallel::SingleDevice{.threads = 1}, shards},
        model_(sizes),
        session_(policy_, model_, layout_, initial_values()),
        loader_(data::InMemoryDataset{texts_of(sizes)}, data::SequentialSampler{}, Collate{},
                {.batch_size = sizes.batch / shards, .workers = 0}),
        held_(first(shards)) {}

  double operator()(double duration) {
    return static_cast<double>(samples_) * rate(duration, Time::processor, [&] {
             ++steps_;
             session_.micro_step(held_.batches(), {.key = static_cast<std::uint64_t>(steps_)});
             session_.update(optim::AdamW{.learning_rate = 3e-4}, {.step = steps_, .learning_rate = 3e-4});
           });
  }

 private:
  using Loader = data::DataLoader<data::InMemoryDataset<Text>, data::SequentialSampler, Collate>;
  std::vector<float> initial_values() const {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 1, values.data());
    return values;
  }
  typename Loader::HeldBatches first(int shards) {
    loader_.start({0, shards, shards}, 0, 0, 1);
    return loader_.next();
  }

  Index samples_;
  Policy policy_;
  Classifier model_;
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  Policy::Session<Classifier, optim::AdamW> session_;
  Loader loader_;
  typename Loader::HeldBatches held_;
  Index steps_ = 0;
};

template <class Collate>
void compare(Ratios& ratios, std::string const& rows, Sizes const& sizes) {
  Trained<Collate> plain(sizes, 1);
  for (int const shards : {2, 4, 8}) {
    Trained<Collate> sharded(sizes, shards);
    ratios.compare("step text classification, d=128, " + rows + ", 1 thread, " + std::to_string(shards) + " shards",
                   "plain", std::ref(sharded), std::ref(plain));
  }
}

}  // namespace

int main() {
  Ratios ratios("parallel/policy/reproducible");
  compare<data::PadCollate>(ratios, "padded", {});
  compare<data::PadCollate>(ratios, "padded, unequal texts", {.rows = Rows::unequal});
  compare<data::RaggedCollate>(ratios, "ragged", {.rows = Rows::unequal});
}
