// SPDX-License-Identifier: Apache-2.0
// Training whose attention cuDNN computes.
#include <lockstep/cuda.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "memory/device.hpp"

using namespace lockstep;

namespace {

struct Text {
  std::vector<std::int32_t> tokens;
  int label;
};

/// 16 texts of 2 to 8 words.
std::vector<Text> texts() {
  std::vector<Text> all(16);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].label = static_cast<int>(i % 2);
    for (std::size_t t = 0; t < 2 + i % 7; ++t)
      all[i].tokens.push_back(static_cast<std::int32_t>(1 + (5 * i + t) % 9 + 10 * (i % 2)));
  }
  return all;
}

class Classifier {
 public:
  explicit Classifier(double dropout) : dropout_(dropout) {}
  void visit(auto&& each) { each("embedding", embedding_), each("encoder", encoder_), each("head", head_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    auto const logits = head_.forward(context, nn::mean_pool(context, encoder_.forward(context, x)));
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  double dropout_;
  nn::FusedEmbedding embedding_{{.vocabulary = 20, .length = 8, .width = 16}};
  nn::TransformerEncoder encoder_{{.layers = 1, .width = 16, .heads = 2, .feed_forward = 16, .dropout = dropout_}};
  nn::Linear head_{16, 2};
};

struct Outcome {
  std::vector<float> values;
  train::RunRecord record;
};

template <class Policy>
Outcome fit(Policy const& policy, double dropout = 0) {
  Trainer trainer(nn::InBfloat16{Classifier(dropout)}, optim::SGD{.learning_rate = 0.1}, policy, 7);
  data::InMemoryDataset const all(texts());
  data::DataLoader loader(all, data::ShuffledSampler{.seed = 3}, data::PadCollate{.multiple = 8},
                          {.batch_size = 8 / policy.all_shards()});
  auto record = trainer.fit(loader, {.epochs = 2});
  return {{trainer.values().begin(), trainer.values().end()}, std::move(record)};
}

template <class Policy>
[[nodiscard]] auto on_cudnn(Policy policy) {
  return parallel::OnCuda{std::move(policy), {}, parallel::MatmulPrecision::float32, parallel::AttentionKernels::cudnn};
}

}  // namespace

TEST_CASE("a policy lets cuDNN compute attention, and the run records which kernels computed") {
  if (!lockstep_test::has_gpu("attention by cuDNN in training")) return;
  auto const own = fit(parallel::OnCuda{parallel::SingleDevice{}}), other = fit(on_cudnn(parallel::SingleDevice{}));
  CHECK(own.record.gpu.attention_kernels == "own");
  CHECK(own.record.gpu.attention_by_cudnn + own.record.gpu.attention_not_by_cudnn == 0);
  auto const& gpu = other.record.gpu;
  CHECK(gpu.attention_kernels == "cudnn");
  CHECK(gpu.attention_by_cudnn >= 2);  // forward and backward
  CHECK(gpu.attention_not_by_cudnn == 0);
  REQUIRE(gpu.libraries.size() == 4);
  CHECK(gpu.libraries[3].first == "cudnn");
#if defined(LOCKSTEP_CUDA_EMULATION)
  CHECK(gpu.libraries[3].second == "9.19.0");
#endif
  CHECK(fit(on_cudnn(parallel::SingleDevice{})).values == other.values);
  CHECK(fit(on_cudnn(parallel::DataParallel{.devices = 2})).record.gpu.attention_by_cudnn >= 2);
  // Probabilities and slopes are rounded to 2^-9 of their size in either kernel: a gradient of length at most 2 per
  // step changes by at most 2^-8 of it, in each of 4 steps of 0.1.
  for (std::size_t i = 0; i < own.values.size(); ++i) CHECK(std::abs(own.values[i] - other.values[i]) <= 4 * 0.1 / 128);
}

TEST_CASE("with dropout Lockstep's kernels compute attention, and the run records the reason") {
  if (!lockstep_test::has_gpu("attention by cuDNN in training")) return;
  auto const gpu = fit(on_cudnn(parallel::SingleDevice{}), 0.1).record.gpu;
  CHECK(gpu.attention_by_cudnn == 0);
  CHECK(gpu.attention_not_by_cudnn >= 2);
  CHECK(gpu.attention_reason == "cuDNN's dropout has other random bits");
}
