// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/elementwise/multiply.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/subtract.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace multiply_on_cuda {
namespace {

/// A layer's outputs times their difference from an input, and that as a sequence times the outputs of another row.
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

}  // namespace

TEST_CASE_TEMPLATE("multiply and subtract on CUDA: values and gradients equal the host's", Scalar, float, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("multiply on CUDA")) return;
  // Every product and gradient is below 256.
  lockstep_test::check_same_on_cuda<Scalar>(
      Model{}, {1, -1, 0, 0, 1, 1, -1, 0, 1},
      {1, 0, 1, 0, 2, 1, 1, 1, 0, 0, 1, -1, 1, 1, 2, 1, 0, -1, 2, 1, 1, 0, 2, -1, 7, 11, 2, 1, 3, 2}, 3);
}

}  // namespace multiply_on_cuda
