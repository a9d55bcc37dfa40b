// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/multiply.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/mean_squared_error.hpp>
#include <lockstep/nn/subtract.hpp>

#include "memory/device.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace multiply_on_cuda {
namespace {

/// A layer's outputs times what they are away from an input, and these as a sequence times the outputs of another row.
struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const y = layer.forward(context, context.input(rows(0, 3)));
    auto const gated = nn::multiply(context, y, nn::subtract(context, y, context.input(rows(3, 3))));
    nn::Sequence<typename Context::Scalar, Space> const sequence{gated, {.rows = 1, .slots = 3, .length = 3}};
    auto const factors = layer.forward(context, context.input(rows(6, 1)));
    return nn::mean_squared_error(context, nn::multiply(context, sequence, factors).tokens, rows(7, 3));
  }
};
// Small whole numbers, which nothing rounds: every product and gradient is one below 256.
std::vector<float> const weights{1, -1, 0, 0, 1, 1, -1, 0, 1};
std::vector<float> const numbers{1, 0, 1,  0, 2, 1, 1, 1, 0,  0, 1,  -1, 1, 1, 2,
                                 1, 0, -1, 2, 1, 1, 0, 2, -1, 7, 11, 2,  1, 3, 2};

}  // namespace

TEST_CASE_TEMPLATE("multiply and subtract on CUDA: values and gradients are the host's", Scalar, float, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("multiply on CUDA")) return;
  lockstep_test::Trial<Model, float> host{Model{}};
  std::copy(weights.begin(), weights.end(), host.values.begin());
  auto const loss = host.step(TensorView<float const, 2, HostSpace>{numbers.data(), {10, 3}});

  memory::CudaStream stream;
  nn::Context<Scalar, CudaSpace> context(stream.view());
  OnDevice<float> const values(host.values), gradients(std::vector<float>(host.values.size())), batch(numbers);
  OnDevice<double> const totals({0, 0});
  context.bind(values.view(host.values.size()).data, gradients.view(host.values.size()).data,
               host.layout.entries().size());
  context.begin_step();
  context.begin_micro_batch(nn::Mode::training, 1);
  auto const on_device =
      host.model.forward(context, TensorView<float const, 2, CudaSpace>{batch.view(30).data, {10, 3}});
  kernel::BinaryOperation<CudaSpace>::forward<kernel::Plus, double>(stream.view(), {totals.view(2).data, {2}},
                                                                    {on_device.totals, {2}}, totals.view(2));
  context.backward({});
  CHECK(totals.values() == std::vector<double>{loss.sum, loss.weight});
  CHECK(gradients.values() == host.gradients);
  CHECK(host.gradients != std::vector<float>(host.gradients.size()));
}

}  // namespace multiply_on_cuda
