// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/autograd/variable_of.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/contrastive/dot_products.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace variable_of_on_cuda {
namespace {

/// Products of the batch with a parameter, which is read twice.
struct Model {
  nn::Parameter centers{{3, 3}, nn::Initializer::constant(0)};
  void visit(auto&& each) { each("centers", centers); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const once = nn::variable_of<2>(context, centers), again = nn::variable_of<2>(context, centers);
    auto const x = context.input(rows(0, 3));
    return nn::mean_squared_error(context, nn::dot_products(context, x, once), rows(3, 3))
        .with_auxiliary(nn::mean_squared_error(context, again, rows(0, 3)));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("variable_of on CUDA: values and gradients equal the host's", Scalar, float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("variable_of on CUDA")) return;
  lockstep_test::check_same_on_cuda<Scalar>(Model{}, {1, -1, 0, 0, 1, 1, -1, 0, 1},
                                            {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 2, -1, 1, 0, 1, 2, 0}, 3);
}

}  // namespace variable_of_on_cuda
