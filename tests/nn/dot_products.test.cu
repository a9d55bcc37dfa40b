// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/dot_products.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/mean_squared_error.hpp>

#include "memory/device.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace dot_products_on_cuda {
namespace {

/// Products of a layer's outputs with each other, and of an input with them.
struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const y = layer.forward(context, context.input(rows(0, 3)));
    auto const loss = nn::mean_squared_error(context, nn::dot_products(context, y, y), rows(0, 3));
    return loss.with_auxiliary(
        nn::mean_squared_error(context, nn::dot_products(context, context.input(rows(3, 2)), y, 2), rows(5, 2)));
  }
};
// Small whole numbers, which nothing rounds: every gradient is one below 256.
std::vector<float> const weights{1, -1, 0, 0, 1, 1, -1, 0, 1};
std::vector<float> const numbers{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 2, -1, 1, 0, 1, 2, 0, 0, -1, 3};

}  // namespace

TEST_CASE_TEMPLATE("dot_products on CUDA: values and gradients are the host's", Scalar, float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("dot_products on CUDA")) return;
  lockstep_test::Trial<Model, float> host{Model{}};
  std::copy(weights.begin(), weights.end(), host.values.begin());
  auto const loss = host.step(TensorView<float const, 2, HostSpace>{numbers.data(), {7, 3}});

  memory::CudaStream stream;
  nn::Context<Scalar, CudaSpace> context(stream.view());
  OnDevice<float> const values(host.values), gradients(std::vector<float>(host.values.size())), batch(numbers);
  OnDevice<double> const totals({0, 0});
  context.bind(values.view(host.values.size()).data, gradients.view(host.values.size()).data,
               host.layout.entries().size());
  context.begin_step();
  context.begin_micro_batch(nn::Mode::training, 1);
  auto const on_device =
      host.model.forward(context, TensorView<float const, 2, CudaSpace>{batch.view(21).data, {7, 3}});
  kernel::BinaryOperation<CudaSpace>::forward<kernel::Plus, double>(stream.view(), {totals.view(2).data, {2}},
                                                                    {on_device.totals, {2}}, totals.view(2));
  context.backward({});
  CHECK(totals.values() == std::vector<double>{loss.sum, loss.weight});
  CHECK(gradients.values() == host.gradients);
  CHECK(host.gradients != std::vector<float>(host.gradients.size()));
}

}  // namespace dot_products_on_cuda
