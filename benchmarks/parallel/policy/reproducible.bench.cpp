// SPDX-License-Identifier: Apache-2.0
// Cost of results that do not depend on the number of devices, on one device: steps of the text classifier on 32 texts
// in shards, against steps on all texts at once. One thread each, in samples per second of processor time.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <suite.hpp>
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

  [[nodiscard]] Index samples() const noexcept { return samples_; }
  void step() {
    ++steps_;
    session_.micro_step(held_.batches(), {.key = static_cast<std::uint64_t>(steps_)});
    session_.update(optim::AdamW{.learning_rate = 3e-4}, {.step = steps_, .learning_rate = 3e-4});
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
void add_case(std::string const& rows, Sizes const& sizes) {
  auto const add_steps = [](std::string const& name, Shared<Trained<Collate>> const& trained) {
    add(name, [=](benchmark::State& state) {
      trained->step();
      for (auto _ : state) trained->step();
      state.SetItemsProcessed(state.iterations() * trained->samples());
    })->Unit(benchmark::kMillisecond);
  };
  Shared const plain([sizes] { return Trained<Collate>(sizes, 1); });
  for (int const shards : {2, 4, 8}) {
    auto const name = "reproducible/" + rows + "/shards:" + std::to_string(shards);
    add_steps(name, Shared([=] { return Trained<Collate>(sizes, shards); }));
    add_steps(name + "/peer:plain", plain);
  }
}

}  // namespace

void register_benchmarks() {
  add_case<data::PadCollate>("padded", {});
  add_case<data::PadCollate>("padded/unequal", {.rows = Rows::unequal});
  add_case<data::RaggedCollate>("ragged", {.rows = Rows::unequal});
}
