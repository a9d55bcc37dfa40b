// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/module/frozen.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>

#include "memory/device.hpp"

using namespace lockstep;

namespace frozen_on_cuda {
namespace {

constexpr Index rows = 6, width = 4, classes = 3;

template <class Space>
struct Batch {
  TensorView<float const, 2, Space> x;              // [rows, width]
  TensorView<std::uint8_t const, 1, Space> labels;  // [rows]
  bool operator==(Batch const&) const = default;
};
/// Has the former name of `copied`, which devices still call.
template <class Space, class Copy>
Batch<typename Copy::Space> moved(Batch<Space> const& batch, Copy const& copy) {
  return {copy(batch.x), copy(batch.labels)};
}

class Model {
 public:
  void visit(auto&& each) { each("body", body_), each("head", head_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch<typename Context::Space> const& batch) const {
    return nn::cross_entropy(context, head_.forward(context, body_.forward(context, context.input(batch.x))),
                             batch.labels);
  }

 private:
  nn::Frozen<nn::Linear> body_{nn::Linear(width, 8)};
  nn::Linear head_{8, classes};
};

optim::AdamW optimizer() {
  return {.weight_decay = 0.1,
          .rates = [](std::string_view name, std::span<Index const>) { return name == "head.bias" ? 0.0 : 0.5; }};
}

/// The parameters after some steps with one batch, whose first passes a device records.
template <class Space>
std::vector<float> trained(std::vector<float> const& start) {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Model, Space> replica(model, layout, {.threads = 1});
  parallel::OptimizerState<optim::AdamW, Space> state(layout);
  replica.set_values(start);
  auto const block = memory::PinnedResource{}.allocate(1 << 12);
  auto* const x = reinterpret_cast<float*>(block.data());
  auto* const labels = reinterpret_cast<std::uint8_t*>(x + rows * width);
  for (Index i = 0; i < rows * width; ++i) x[i] = static_cast<float>(i * 7 % 11) / 8 - 0.6f;
  for (Index i = 0; i < rows; ++i) labels[i] = static_cast<std::uint8_t>(i % classes);
  Batch<HostSpace> const batch{{x, {rows, width}}, {labels, {rows}}};
  for (int step = 1; step <= 5; ++step) {
    replica.run(batch, {.key = 1});
    replica.zero_unused();
    state.update(optimizer(), replica, replica.loss(), {.step = step, .learning_rate = 0.1, .clip_norm = 0.5});
  }
  auto const values = replica.values();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("on CUDA frozen blocks and parameters with rate 0 are unchanged, and the rest learns as on the host") {
  if (!lockstep_test::has_gpu("frozen blocks on CUDA")) return;
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> start(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 3, start.data());
  auto const host = trained<HostSpace>(start), device = trained<CudaSpace>(start);
  for (auto const& entry : layout.entries())
    for (auto i = static_cast<std::size_t>(entry.offset); i < static_cast<std::size_t>(entry.offset + entry.size);
         ++i) {
      bool const stays = entry.name != "head.weight";
      CHECK((device[i] == start[i]) == stays);
      CHECK((host[i] == start[i]) == stays);
      CHECK(device[i] == doctest::Approx(host[i]).epsilon(1e-4));
    }
}

}  // namespace frozen_on_cuda
