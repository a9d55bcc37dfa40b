// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/contrastive/logit_scale.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace logit_scale_on_cuda {
namespace {

struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  nn::LogitScale scale, second{{.start = 1, .max = 2}};
  void visit(auto&& each) { each("layer", layer), each("scale", scale), each("second", second); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first, Index count) {
      return TensorView<float const, 2, Space>{batch.data + first * 3, {count, 3}};
    };
    auto const y = layer.forward(context, context.input(rows(0, 2)));
    return nn::mean_squared_error(context, second.forward(context, scale.forward(context, y)), rows(2, 2));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a learned factor on CUDA: values and gradients equal the host's", Scalar, float, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("LogitScale on CUDA")) return;
  // The factors are 1 and, for e^4, 2: smaller factors reduce the loss.
  lockstep_test::check_same_on_cuda<Scalar>(Model{}, {1, -1, 0, 0, 1, 1, -1, 0, -1, 0, 4},
                                            {1, 0, 1, 0, 2, 1, 1, 0, -1, -3, 4, 0}, 3);
}

}  // namespace logit_scale_on_cuda
