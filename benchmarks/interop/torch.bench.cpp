// SPDX-License-Identifier: Apache-2.0
// A training step of a torch module under our policy for one device, against the loop that its users write by hand:
// equal module, torch's AdamW, one thread. Also the passes alone: their additional cost is the price of our gradients'
// arena.
#include <lockstep/interop/torch.hpp>

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <rate.hpp>
#include <ratios.hpp>
#include <train/training.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr std::size_t inputs = 64;
struct Sample {
  std::array<float, inputs> x;
  std::int64_t label;
};

struct Net : torch::nn::Module {
  std::vector<torch::nn::Linear> layers;
  Net(std::int64_t width, int depth) {
    for (int i = 0; i < depth; ++i)
      layers.push_back(register_module(
          "layer" + std::to_string(i),
          torch::nn::Linear(i == 0 ? static_cast<std::int64_t>(inputs) : width, i + 1 == depth ? 10 : width)));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < layers.size(); ++i) x = i == 0 ? layers[i](x) : layers[i](torch::relu(x));
    return x;
  }
};

auto batch_of(Index rows) {
  std::vector<Sample> samples;
  for (Index row = 0; row < rows; ++row) {
    Sample sample{{}, row % 10};
    for (std::size_t i = 0; i < inputs; ++i) sample.x[i] = 2 * uniform(Philox(static_cast<std::uint64_t>(row)), i) - 1;
    samples.push_back(sample);
  }
  return one_batch(std::move(samples), data::PadCollate{});
}

void compare(Ratios& ratios, std::string const& name, std::int64_t width, int depth, Index rows) {
  auto const make = [=] { return std::make_shared<Net>(width, depth); };
  auto const predict = [](Net& net, auto const& batch) { return net.forward(interop::tensor_of(batch[&Sample::x])); };
  auto const loss = [](torch::Tensor const& logits, auto const& batch) {
    auto const sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    return interop::TorchLoss{
        torch::nn::functional::cross_entropy(logits, interop::tensor_of(batch[&Sample::label]), sum), batch.rows()};
  };
  interop::Torch model{make, predict, loss, interop::TorchRandom::as_is};
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica replica(model, layout, {.threads = 1});
  Training ours(parallel::SingleDevice{.threads = 1}, model, batch_of(rows));
  auto const net = make();
  auto loader = batch_of(rows);
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& batch = held.batches()[0];
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(3e-4));
  auto const pass = [&] {
    optimizer.zero_grad();
    auto const one = loss(predict(*net, batch), batch);
    (one.sum / one.weight).backward();
  };
  auto const compare_with = [&](std::string const& what, auto const& we, auto const& they) {
    ratios.compare(
        what + " torch module, " + name + ", 1 thread", "libtorch",
        [&](double duration) { return rate(duration, Time::processor, we); },
        [&](double duration) { return rate(duration, Time::processor, they); }, {.seconds = 0.5, .count = 15});
  };
  compare_with(
      "step", [&] { ours.step(); }, [&] { pass(), optimizer.step(); });
  compare_with(
      "forward and backward", [&] { replica.run(batch, {}); }, pass);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  Ratios ratios("interop/torch");
  compare(ratios, "4 layers of 512, batch 64", 512, 4, 64);
  compare(ratios, "12 layers of 32, batch 16", 32, 12, 16);
}
