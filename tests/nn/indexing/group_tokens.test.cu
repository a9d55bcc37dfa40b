// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/indexing/group_tokens.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/indexing/gather_rows.hpp>
#include <lockstep/nn/indexing/gather_tokens.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

#include "indices.hpp"
#include "nn/same_on_cuda.hpp"

using namespace lockstep;

namespace group_tokens_on_cuda {
namespace {

template <class Space>
struct Graphs {
  TensorView<Index const, 1, Space> offsets, positions;  // of the nodes
  lockstep_test::RaggedInts<Space> sources, firsts;
  TensorView<std::int32_t const, 1, Space> rows;
};

/// Messages between the nodes of two graphs, of 3 and 2 nodes, and rows of the result.
struct Model {
  Graphs<HostSpace> host;
  Graphs<CudaSpace> device;
  nn::Linear layer{2, 2, nn::Bias::none};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, TensorView<float const, 2, Space> const& batch) const {
    auto const& graphs = [this]() -> auto& {
      if constexpr (Space::host_accessible)
        return host;
      else
        return device;
    }
    ();
    auto const layout = nn::SequenceLayout<Space>::ragged(5, 3, graphs.offsets, graphs.positions);
    nn::SequenceOf<Context> const nodes{layer.forward(context, context.input(batch)), layout};
    auto const messages = nn::gather_tokens(context, nodes, graphs.sources);
    auto const received = nn::group_tokens(context, messages, graphs.firsts);
    auto const y = nn::add(context, nn::sum_pool(context, received), nn::max_pool(context, received));
    TensorView<float const, 2, Space> const target{batch.data, {3, 2}};
    return nn::mean_squared_error(context, nn::gather_rows(context, y, graphs.rows), target);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("gather_tokens, group_tokens and gather_rows on CUDA: values and gradients equal the host's", Scalar,
                   float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("group_tokens on CUDA")) return;
  using lockstep_test::OnDevice;
  lockstep_test::Lists const sources({{1, 2, 0, 0}, {0}}), firsts({{0, 2, 3}, {0, 0}});
  std::vector<Index> const offsets{0, 3, 5}, positions{4, 9};
  std::vector<std::int32_t> const rows{4, 0, 4};
  auto const view = [](auto const& v) {
    return TensorView<std::remove_reference_t<decltype(v[0])>, 1, HostSpace>{v.data(), {std::ssize(v)}};
  };
  OnDevice<Index> const node_offsets(offsets), node_positions(positions), source_offsets(sources.offsets),
      first_offsets(firsts.offsets);
  OnDevice<std::int32_t> const source_values(sources.ragged_values), first_values(firsts.ragged_values),
      device_rows(rows);
  Model const model{{view(offsets), view(positions), sources.ragged(), firsts.ragged(), view(rows)},
                    {node_offsets.view(3),
                     node_positions.view(2),
                     {source_values.view(5), source_offsets.view(3), sources.longest},
                     {first_values.view(5), first_offsets.view(3), firsts.longest},
                     device_rows.view(3)}};
  lockstep_test::check_same_on_cuda<Scalar>(model, {1, -1, 2, 1}, {1, 0, 0, 1, 2, 1, -1, 3, 1, 1}, 2);
}

}  // namespace group_tokens_on_cuda
