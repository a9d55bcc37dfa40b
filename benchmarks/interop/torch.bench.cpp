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

#include <suite.hpp>
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

struct Predict {
  torch::Tensor operator()(Net& net, auto const& batch) const {
    return net.forward(interop::tensor_of(batch[&Sample::x]));
  }
};
struct Loss {
  auto operator()(torch::Tensor const& logits, auto const& batch) const {
    auto const sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    return interop::TorchLoss{
        torch::nn::functional::cross_entropy(logits, interop::tensor_of(batch[&Sample::label]), sum), batch.rows()};
  }
};

/// Our policy's step and passes of a module, and a user's own.
class Trial {
 public:
  Trial(std::int64_t width, int depth, Index rows)
      : model_{[=] { return std::make_shared<Net>(width, depth); }, Predict{}, Loss{}, interop::TorchRandom::as_is},
        replica_(model_, layout_, {.threads = 1}),
        ours_(parallel::SingleDevice{.threads = 1}, model_, batch_of(rows)),
        net_(std::make_shared<Net>(width, depth)),
        loader_(batch_of(rows)),
        held_(first()) {}
  Trial(Trial const&) = delete;
  Trial& operator=(Trial const&) = delete;

  void our_step() { ours_.step(); }
  void our_passes() { replica_.run(held_.batches()[0], {}); }
  void their_passes() {
    optimizer_.zero_grad();
    auto const& batch = held_.batches()[0];
    auto const one = Loss{}(Predict{}(*net_, batch), batch);
    (one.sum / one.weight).backward();
  }
  void their_step() {
    their_passes();
    optimizer_.step();
  }

 private:
  using Loader = decltype(batch_of(1));
  using Model = interop::Torch<Net, Predict, Loss>;

  typename Loader::HeldBatches first() {
    loader_.start({}, 0, 0, 1);
    return loader_.next();
  }

  Model model_;
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  parallel::Replica<Model> replica_;
  Training<parallel::SingleDevice, Model, Loader> ours_;
  std::shared_ptr<Net> net_;
  Loader loader_;
  typename Loader::HeldBatches held_;
  torch::optim::AdamW optimizer_{net_->parameters(), torch::optim::AdamWOptions(3e-4)};
};

}  // namespace

void register_benchmarks() {
  at::set_num_threads(1);
  struct Case {
    std::int64_t width;
    int depth;
    Index rows;
  };
  for (auto const& [width, depth, rows] : {Case{512, 4, 64}, Case{32, 12, 16}}) {
    Shared const trial([width = width, depth = depth, rows = rows] { return Trial(width, depth, rows); });
    auto const sizes = parts({{"layers", depth}, {"width", width}, {"batch", rows}});
    add_pass("torch_module/step" + sizes, trial, [](Trial& t) { t.our_step(); });
    add_pass("torch_module/step" + sizes + "/peer:libtorch", trial, [](Trial& t) { t.their_step(); });
    add_pass("torch_module/forward_backward" + sizes, trial, [](Trial& t) { t.our_passes(); });
    add_pass("torch_module/forward_backward" + sizes + "/peer:libtorch", trial, [](Trial& t) { t.their_passes(); });
  }
}
