// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/normalization/layer_scale.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace layer_scale_on_cuda {
namespace {

/// The factors are used twice: for two images of two places, and for a sequence.
struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  nn::LayerScale scale{3};
  void visit(auto&& each) { each("layer", layer), each("scale", scale); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first) { return TensorView<float const, 2, Space>{batch.data + first * 3, {4, 3}}; };
    auto const x = layer.forward(context, context.input(rows(0)));
    auto const image = scale.forward(context, x.reshape(Extents<3>{2, 2, 3})).as_rows();
    nn::Sequence<typename Context::Scalar, Space> const sequence{image, {.rows = 2, .slots = 4, .length = 2}};
    return nn::mean_squared_error(context, scale.forward(context, sequence).tokens, rows(4));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("channel factors on CUDA: values and gradients equal the host's", Scalar, float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("LayerScale on CUDA")) return;
  lockstep_test::check_same_on_cuda<Scalar>(Model{}, {1, -1, 0, 0, 1, 1, -1, 0, 1, 1, 2, -1},
                                            {1, 0, 1, 0, 2, 1, 1, 1, 0, 0, 1, -1, 0, 1, 2, 1, 7, 4, 1, 3, 2, -1, 2, 1},
                                            3);
}

}  // namespace layer_scale_on_cuda
