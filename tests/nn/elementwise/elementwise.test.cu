// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/elementwise/elementwise.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/leaky_relu.hpp>
#include <lockstep/nn/elementwise/scale.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace elementwise_on_cuda {
namespace {

/// x^2 + by x
struct Parabola {
  static constexpr char const* name = "parabola";
  int by;
  template <class T>
  constexpr kernel::ActivationAt<T> operator()(T x) const {
    return {x * x + static_cast<T>(by) * x, 2 * x + static_cast<T>(by)};
  }
};

struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const y = nn::leaky_relu(context, layer.forward(context, context.input(rows(0, 2))), 0.5);
    auto const z = nn::elementwise(context, Parabola{2}, nn::scale(context, y, 2));
    return nn::mean_squared_error(context, z, rows(2, 2));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("activations by rules with members on CUDA: values and gradients equal the host's", Scalar, float,
                   bfloat16, float16) {
  if (!lockstep_test::has_gpu("activations by rules on CUDA")) return;
  lockstep_test::check_same_on_cuda<Scalar>(Model{}, {1, -1, 0, 0, 1, 1, -1, 0, -1},
                                            {1, 0, 1, 0, 2, 1, 1, 2, 3, 5, 4, 2}, 3);
}

}  // namespace elementwise_on_cuda
