// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep_bench {

using namespace lockstep;

/// Returns all samples as one batch.
template <class Sample, class Collate>
auto one_batch(std::vector<Sample> samples, Collate collate) {
  auto const size = static_cast<Index>(samples.size());
  return data::DataLoader{data::InMemoryDataset{std::move(samples)},
                          data::SequentialSampler{},
                          collate,
                          {.batch_size = size, .workers = 0}};
}

/// A model under a policy, and a batch to train it on repeatedly, on every device.
template <class Policy, class Model, class Loader>
class Training {
 public:
  Training(Policy policy, Model model, Loader loader)
      : policy_(std::move(policy)),
        model_(std::move(model)),
        layout_(nn::ParameterLayout::of(model_)),
        session_(policy_, model_, layout_, initial_values()),
        loader_(std::move(loader)),
        held_(first_batch()),
        batches_(static_cast<std::size_t>(policy_.shards()), held_.batches()[0]) {}
  // The session refers to the other members.
  Training(Training const&) = delete;
  Training& operator=(Training const&) = delete;

  [[nodiscard]] Policy& policy() noexcept { return policy_; }
  [[nodiscard]] Index batch_size() const { return held_.batches()[0].rows(); }
  /// Memory of the first device in addition to parameters, their gradients and AdamW's two moments.
  [[nodiscard]] double activation_bytes() {
    return static_cast<double>(session_.report().peak_bytes_per_device.at(0)) -
           4 * static_cast<double>(layout_.size()) * sizeof(float);
  }

  void step() {
    ++steps_;
    session_.micro_step(std::span(std::as_const(batches_)), {.key = static_cast<std::uint64_t>(steps_)});
    session_.update(optim::AdamW{.learning_rate = 3e-4}, {.step = steps_, .learning_rate = 3e-4});
  }

 private:
  std::vector<float> initial_values() const {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 1, values.data());
    return values;
  }
  typename Loader::HeldBatches first_batch() {
    loader_.start({}, 0, 0, 1);
    return loader_.next();
  }

  Policy policy_;
  Model model_;
  nn::ParameterLayout layout_;
  typename Policy::template Session<Model, optim::AdamW> session_;
  Loader loader_;
  typename Loader::HeldBatches held_;
  std::vector<typename Loader::Batch> batches_;  // equal on every device
  Index steps_ = 0;
};

}  // namespace lockstep_bench
