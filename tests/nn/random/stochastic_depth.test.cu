// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/random/stochastic_depth.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace stochastic_depth_on_cuda {
namespace {

std::vector<Index> const positions{7, 8, 10, Index{1} << 40};  // two of the vectors are kept, and one of the sequences

/// Four vectors, followed by two sequences of two tokens, with the rest of each.
struct Model {
  nn::Linear layer{3, 3, nn::Bias::none};
  nn::StochasticDepth depth{0.5};
  lockstep_test::OnDevice<Index> const* on_device;
  void visit(auto&& each) { each("layer", layer), each("depth", depth); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const rows = [&](Index first) { return TensorView<float const, 2, Space>{batch.data + first * 3, {4, 3}}; };
    TensorView<Index const, 1, Space> places{positions.data(), {4}};
    if constexpr (std::is_same_v<Space, CudaSpace>) places = on_device->view(4);
    auto const x = layer.forward(context, context.input(rows(0)));
    auto const y = nn::add(context, x, depth.forward(context, x, places));
    nn::Sequence<typename Context::Scalar, Space> const sequence{
        y, nn::SequenceLayout<Space>::padded(2, {}, {places.data, {2}})};
    return nn::mean_squared_error(context, nn::add(context, sequence, depth.forward(context, sequence)).tokens,
                                  rows(4));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("stochastic depth on CUDA: values and gradients equal the host's", Scalar, float, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("StochasticDepth on CUDA")) return;
  lockstep_test::OnDevice<Index> const on_device(positions);
  lockstep_test::check_same_on_cuda<Scalar>(Model{.on_device = &on_device}, {1, -1, 0, 0, 1, 1, -1, 0, 1},
                                            {1, 0, 1, 0, 2, 1, 1, 1, 0, 0, 1, -1, 0, 1, 2, 1, 7, 4, 1, 3, 2, -1, 2, 1},
                                            3);
}

}  // namespace stochastic_depth_on_cuda
