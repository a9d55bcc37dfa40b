// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/contrastive/dot_products.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

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

}  // namespace

TEST_CASE_TEMPLATE("dot_products on CUDA: values and gradients equal the host's", Scalar, float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("dot_products on CUDA")) return;
  // Every gradient is below 256.
  lockstep_test::check_same_on_cuda<Scalar>(Model{}, {1, -1, 0, 0, 1, 1, -1, 0, 1},
                                            {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 2, -1, 1, 0, 1, 2, 0, 0, -1, 3}, 3);
}

}  // namespace dot_products_on_cuda
