// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/interop/torch.hpp>

// Points in the plane, and a torch module that learns which of them are in a disc.
namespace lockstep_test {

using namespace lockstep;

struct Point {
  std::array<float, 2> at;
  std::int64_t inside;
};

inline std::vector<Point> points(std::uint64_t count) {
  std::vector<Point> all;
  for (std::uint64_t i = 0; i < count; ++i) {
    float const x = 2 * uniform(Philox(1), i) - 1, y = 2 * uniform(Philox(2), i) - 1;
    all.push_back({{x, y}, x * x + y * y < 0.6f});
  }
  return all;
}

/// Two layers, with optional normalization and dropout between them, and one unused layer.
struct Net : torch::nn::Module {
  bool extras;
  torch::nn::Linear hidden{nullptr}, head{nullptr}, unused{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};

  explicit Net(bool with_extras = false) : extras(with_extras) {
    torch::manual_seed(3);
    hidden = register_module("hidden", torch::nn::Linear(2, 24));
    if (extras) {
      norm = register_module("norm", torch::nn::BatchNorm1d(24));
      dropout = register_module("dropout", torch::nn::Dropout(0.2));
      unused = register_module("unused", torch::nn::Linear(5, 3));
    }
    head = register_module("head", torch::nn::Linear(24, 2));
  }
  torch::Tensor forward(torch::Tensor const& x) {
    auto h = hidden(x);
    if (extras) h = dropout(norm(h));
    return head(torch::gelu(h));
  }
};

inline auto const predict = [](auto& net, auto const& batch) {
  return net.forward(interop::tensor_of(batch[&Point::at]));
};
inline auto const loss_of = [](torch::Tensor const& logits, auto const& batch) {
  auto const labels = interop::tensor_of(batch[&Point::inside]);
  return interop::TorchLoss{
      torch::nn::functional::cross_entropy(logits, labels,
                                           torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)),
      batch.rows()};
};
inline auto model(bool extras) {
  return interop::Torch{[extras] { return std::make_shared<Net>(extras); }, predict, loss_of};
}
template <class Sampler = data::ShuffledSampler>
auto loader(Index batch_size, std::uint64_t samples = 44, Sampler sampler = {}) {
  return data::DataLoader{
      data::InMemoryDataset{points(samples)}, sampler, data::PadCollate{}, {.batch_size = batch_size, .workers = 0}};
}

}  // namespace lockstep_test
