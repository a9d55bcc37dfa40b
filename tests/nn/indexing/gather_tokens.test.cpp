// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/indexing/gather_tokens.hpp>

#include <doctest/doctest.h>

#include <array>

#include "indices.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::Lists;
using lockstep_test::TokenBatch;

namespace {

/// Tokens of padded sequences, at places of a padded or a ragged column.
struct Model {
  nn::Parameter x;
  Lists const* places;
  bool ragged;
  Model(TokenBatch const& batch, Lists const& at, bool is_ragged)
      : x{{batch.rows * batch.length, 3}, nn::Initializer::normal(1)}, places(&at), ragged(is_ragged) {}
  void visit(auto&& each) { each("x", x); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{lockstep_test::learned(context, x), batch.layout()};
    auto const y =
        ragged ? nn::gather_tokens(context, in, places->ragged()) : nn::gather_tokens(context, in, places->padded());
    return lockstep_test::irregular_loss(context, y.tokens, &y.layout);
  }
};

}  // namespace

TEST_CASE("gather_tokens: gradients at padded and ragged places") {
  TokenBatch const batch({5, 0, 1, 9}, 9, 11);
  Lists const places({{4, 0, 4}, {}, {0, 0, 0, 0, 0}, {8, 3}});
  for (bool ragged : {false, true}) {
    auto const result = check_model(Model(batch, places, ragged), batch);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("gather_tokens: tokens of each sample, with zeros in padding") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<float> const numbers{0, 1, 2, 10, 11, 99};  // the last is padding
  TokenBatch const batch({3, 2}, 3, 11);
  nn::Sequence<float, HostSpace> const x{context.input(TensorView<float const, 2, HostSpace>{numbers.data(), {6, 1}}),
                                         batch.layout()};
  Lists const places({{2}, {1, 0}});
  auto const padded = nn::gather_tokens(context, x, places.padded());
  CHECK(std::vector<float>(padded.tokens.value.data, padded.tokens.value.data + 4) == std::vector<float>{2, 0, 11, 10});
  CHECK(padded.layout.tokens(0) == 1);
  auto const ragged = nn::gather_tokens(context, x, places.ragged());
  CHECK(std::vector<float>(ragged.tokens.value.data, ragged.tokens.value.data + 3) == std::vector<float>{2, 11, 10});

  struct {
    TensorView<std::int32_t const, 1, HostSpace> values;
  } const one{{places.ragged_values.data(), {2}}};  // a column of std::int32_t: one token of each sample
  auto const each = nn::gather_tokens(context, x, one).tokens;
  CHECK(std::vector<float>(each.value.data, each.value.data + 2) == std::vector<float>{2, 11});

  Lists const wrong({{2}, {2}}), fewer(std::vector<std::vector<std::int32_t>>{{2}});  // g++ takes {{2}} for a Lists too
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::gather_tokens(context, x, wrong.ragged())),
                       doctest::Contains("gather_tokens: row 1 of the batch names token 2"), RowError);
  CHECK_THROWS_AS(static_cast<void>(nn::gather_tokens(context, x, fewer.ragged())), ShapeError);
}
