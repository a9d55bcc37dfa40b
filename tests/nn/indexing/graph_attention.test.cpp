// SPDX-License-Identifier: Apache-2.0
// The composition of docs/how-to/train-on-graphs.md: a softmax over groups of edges, and a weighted sum for each head.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>
#include <lockstep/nn/autograd/detach.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/elementwise.hpp>
#include <lockstep/nn/elementwise/exp.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/scale.hpp>
#include <lockstep/nn/indexing/group_tokens.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

#include "indices.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::Lists;

namespace {

struct Reciprocal {
  static constexpr char const* name = "reciprocal";
  template <class T>
  constexpr T operator()(T x) const {
    return x > 0 ? 1 / x : T{0};
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return -dy * y * y;
  }
};

template <class Context>
nn::SequenceOf<Context> softmax_of_groups(Context& context, nn::SequenceOf<Context> const& scores) {
  auto const largest = nn::max_pool(context, nn::detach(scores));
  auto const powers = nn::exp(context, nn::add(context, scores, nn::scale(context, largest, -1)));
  auto const sums = nn::sum_pool(context, powers);
  return nn::multiply(context, powers, nn::elementwise(context, Reciprocal{}, sums));
}

/// Two graphs with 4 and 2 edges. Groups of 2, 0, 2 and of 2, 0 edges.
struct Edges {
  Lists firsts{{{0, 2, 2}, {0, 2}}};
  std::vector<Index> offsets{0, 4, 6}, positions{4, 9};
  [[nodiscard]] nn::SequenceLayout<HostSpace> layout() const {
    return nn::SequenceLayout<HostSpace>::ragged(6, 4, {offsets.data(), {3}}, {positions.data(), {2}});
  }
};

constexpr Index heads = 2, width = 3;

/// The weighted sum of the edges' values. Channel c of a value belongs to head c % heads.
struct Attention {
  nn::Parameter scores{{6, heads}, nn::Initializer::normal(1)}, values{{6, heads*width}, nn::Initializer::normal(1)};
  void visit(auto&& each) {
    each("scores", scores);
    each("values", values);
  }
  template <class Context>
  nn::VariableOf<Context, 2> sums(Context& context, Edges const& edges) const {
    nn::SequenceOf<Context> const x{lockstep_test::learned(context, scores), edges.layout()};
    auto const weights = softmax_of_groups(context, nn::group_tokens(context, x, edges.firsts.ragged()));
    auto const v = lockstep_test::learned(context, values);
    auto const weighted = nn::multiply(context, v.reshape(Extents<3>{6, width, heads}), weights.tokens);
    return nn::sum_pool(context, weights.with(weighted.reshape(v.value.extent)));
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Edges const& edges) const {
    return lockstep_test::irregular_loss(context, sums(context, edges));
  }
};

}  // namespace

TEST_CASE("graph attention: gradients of scores and values") {
  auto const result = check_model(Attention{}, Edges{});
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("graph attention: weighted sums by the softmax of each group and head, zeros without edges") {
  lockstep_test::Trial<Attention, float> trial{Attention{}};
  float *scores = nullptr, *from = nullptr;
  for (auto const& entry : trial.layout.entries())
    (entry.name == "scores" ? scores : from) = trial.values.data() + entry.offset;
  for (std::size_t i = 0; i < 6; ++i) {
    scores[i * heads] = 200 + static_cast<float>(i);  // exp(200) would overflow
    scores[i * heads + 1] = -static_cast<float>(i) / 2;
  }
  auto const values = [&](std::size_t edge, std::size_t c) {
    return static_cast<double>(from[edge * heads * width + c]);
  };
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const sums = trial.model.sums(trial.context(), Edges{});
  REQUIRE(sums.extent(0) == 5);
  // The two edges of a group differ by 1 in the first head and by -1/2 in the second.
  double const second[heads] = {1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(0.5))};
  std::size_t const first_edge[] = {0, 6, 2, 4, 6};  // 6: none
  for (std::size_t node = 0; node < 5; ++node)
    for (std::size_t c = 0; c < heads * width; ++c) {
      auto const edge = first_edge[node];
      auto const weight = second[c % heads];
      auto const expected = edge == 6 ? 0 : (1 - weight) * values(edge, c) + weight * values(edge + 1, c);
      // Two products and a sum of numbers whose weights have about 8 roundings each.
      auto const bound = edge == 6 ? 0 : 20 * 0x1p-24 * (std::abs(values(edge, c)) + std::abs(values(edge + 1, c)));
      CHECK(std::abs(static_cast<double>(sums.value.data[node * heads * width + c]) - expected) <= bound);
    }
}
