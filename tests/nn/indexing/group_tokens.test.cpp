// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/indexing/group_tokens.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/indexing/gather_tokens.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

#include "indices.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::Lists;

namespace {

/// Two graphs, of 3 and 2 nodes: their edges are grouped by the node that receives the message.
struct Graphs {
  Lists sources{{{1, 2, 0, 0}, {0}}}, firsts{{{0, 2, 3}, {0, 0}}};
  std::vector<Index> offsets{0, 3, 5}, positions{4, 9};
  [[nodiscard]] nn::SequenceLayout<HostSpace> nodes() const {
    return nn::SequenceLayout<HostSpace>::ragged(5, 3, {offsets.data(), {3}}, {positions.data(), {2}});
  }
};

struct MessagePassing {
  nn::Parameter x{{5, 3}, nn::Initializer::normal(1)};
  void visit(auto&& each) { each("x", x); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Graphs const& graphs) const {
    nn::SequenceOf<Context> const nodes{lockstep_test::learned(context, x), graphs.nodes()};
    auto const messages = nn::gather_tokens(context, nodes, graphs.sources.ragged());
    auto const received = nn::group_tokens(context, messages, graphs.firsts.ragged());
    auto loss = lockstep_test::irregular_loss(context, nn::sum_pool(context, received));
    loss += lockstep_test::irregular_loss(context, nn::mean_pool(context, received));
    return loss += lockstep_test::irregular_loss(context, nn::max_pool(context, received));
  }
};

}  // namespace

TEST_CASE("group_tokens: gradients of messages between the nodes of graphs") {
  auto const result = check_model(MessagePassing{}, Graphs{});
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("group_tokens: one sequence per group, also without tokens") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<float> const numbers{1, 2, 4, 8, 16};
  Graphs const graphs;
  nn::Sequence<float, HostSpace> const nodes{
      context.input(TensorView<float const, 2, HostSpace>{numbers.data(), {5, 1}}), graphs.nodes()};
  auto const messages = nn::gather_tokens(context, nodes, graphs.sources.ragged());
  auto const received = nn::group_tokens(context, messages, graphs.firsts.ragged());
  CHECK(received.layout.rows == 5);
  auto const sums = nn::sum_pool(context, received);
  CHECK(std::vector<float>(sums.value.data, sums.value.data + 5) == std::vector<float>{6, 1, 1, 0, 8});

  Lists const wrong({{0, 2, 5}, {0, 0}});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::group_tokens(context, messages, wrong.ragged())),
                       doctest::Contains("group_tokens: row 0 of the batch has first token 5 at position 2"), RowError);
  auto const padded = nn::gather_tokens(context, nodes, graphs.sources.padded());
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::group_tokens(context, padded, graphs.firsts.ragged())),
                       doctest::Contains("batch the samples with data::RaggedCollate"), ShapeError);
}
