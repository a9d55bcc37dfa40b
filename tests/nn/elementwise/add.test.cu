// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/elementwise/add.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace add_on_cuda {
namespace {

/// The outputs of another row are added to two images with two places.
struct Model {
  nn::Linear layer{3, 3, nn::Bias::none}, other{3, 3, nn::Bias::none};
  void visit(auto&& each) { each("layer", layer), each("other", other); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const x = layer.forward(context, context.input(rows(0, 4))).reshape(Extents<3>{2, 2, 3});
    auto const row = other.forward(context, context.input(rows(4, 2)));
    return nn::mean_squared_error(context, nn::add(context, x, row).as_rows(), rows(6, 4));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("rows added to images on CUDA: values and gradients equal the host's", Scalar, float, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("add on CUDA")) return;
  lockstep_test::check_same_on_cuda<Scalar>(
      Model{}, {1, -1, 0, 0, 1, 1, -1, 0, -1, 0, 1, 1, 1, 0, 2, 1, 1, -1},
      {1, 0, 1, 0, 2, 1, 1, 1, 0, 0, 1, -1, 1, 1, 2, 1, 0, -1, 2, 1, 1, 0, 2, -1, 7, 4, 2, 1, 3, 2}, 3);
}

}  // namespace add_on_cuda
