// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/embedding/segment_of.hpp>

#include <doctest/doctest.h>

#include "nn/layer_check.hpp"

using namespace lockstep;

namespace {
struct None {
  void visit(auto&&) {}
};

/// The second of three segments.
auto const second = [](auto& context, None const&, auto const& x) {
  layer_check::Batch const steps{.rows = 2, .length = 3, .lengths = {3, 1}};
  return nn::segment_of(context, x, 1, steps.layout()).tokens;
};
}  // namespace

TEST_CASE("the tokens of one segment, and their gradient") {
  layer_check::Batch const batch{.rows = 2, .length = 9, .lengths = {9, 3}};
  auto const result = layer_check::check(None{}, 4, batch, second);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("invalid segments are refused with their numbers") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  layer_check::Batch const batch{.rows = 2, .length = 9}, steps{.rows = 2, .length = 3}, odd{.rows = 2, .length = 4};
  nn::Sequence<float, HostSpace> const x{context.variable<2>({18, 5}), batch.layout()};
  CHECK(nn::segment_of(context, x, 2, steps.layout()).tokens.value.extent == Extents<2>{6, 5});
  CHECK(nn::segment_of(context, x, 0, steps.layout()).tokens.value.extent == Extents<2>{6, 5});
  layer_check::Batch const none{.rows = 0, .length = 3};
  nn::Sequence<float, HostSpace> const empty{context.variable<2>({0, 5}), none.layout()};
  CHECK(nn::segment_of(context, empty, 2, none.layout()).tokens.value.extent == Extents<2>{0, 5});
  CHECK_THROWS_AS(static_cast<void>(nn::segment_of(context, empty, -1, none.layout())), ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::segment_of(context, x, 3, steps.layout())),
                       doctest::Contains("segment 3 with 6 slots out of sequences with 18"), ShapeError);
  CHECK_THROWS_AS(static_cast<void>(nn::segment_of(context, x, -1, steps.layout())), ShapeError);
  CHECK_THROWS_AS(static_cast<void>(nn::segment_of(context, x, 0, odd.layout())), ShapeError);
}
