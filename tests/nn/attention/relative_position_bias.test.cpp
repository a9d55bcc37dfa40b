// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/attention/relative_position_bias.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, nn::RelativePositionBias const& layer, auto const& x) {
  return layer.forward(context, x);
};
/// The loss reads rows of the input, so the bias is expanded to as many.
Batch batch_of(Index heads, Index length) { return {.rows = 1, .length = std::max(heads, length)}; }
}  // namespace

TEST_CASE("each distance from query to key reads its bucket, for every head") {
  struct Case {
    bool causal;
    std::vector<float> buckets;  // for keys from three places before the query to two after: four queries, three keys
  };
  for (auto const& [causal, buckets] : {Case{false, {3, 2, 1, 0, 17, 18}}, Case{true, {3, 2, 1, 0, 0, 0}}}) {
    nn::RelativePositionBias layer({.heads = 2, .causal = causal});
    auto const layout = nn::ParameterLayout::of(layer);
    std::vector<float> table(static_cast<std::size_t>(layout.size()));
    for (std::size_t i = 0; i < 32 * 2; ++i) table[i] = static_cast<float>(i / 2 + 100 * (i % 2));
    lockstep::ThreadPool pool(1);
    nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
    context.parameters().bind(table.data(), nullptr, layout.entries().size());
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
    Batch const queries{.rows = 1, .length = 4}, keys{.rows = 1, .length = 3};
    auto const bias = layer.forward(context, queries.layout(), keys.layout()).value;
    REQUIRE(bias.size() == 2 * 6);
    for (Index head = 0; head < 2; ++head)
      for (Index at = 0; at < 6; ++at)
        CHECK(bias(head, at) == buckets[static_cast<std::size_t>(at)] + 100 * static_cast<float>(head));
  }
}

TEST_CASE("gradients of the table") {
  for (bool causal : {false, true})
    for (Index length : {1, 2, 33, 200}) {
      auto const result =
          check(nn::RelativePositionBias({.heads = 3, .causal = causal}), 2, batch_of(3, length), apply);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("a second micro-batch accumulates") {
  nn::RelativePositionBias const layer({.heads = 2});
  auto const once = run<float>(layer, 2, batch_of(2, 20), apply, 1),
             twice = run<float>(layer, 2, batch_of(2, 20), apply, 1, 2);
  for (std::size_t i = 0; i < once.gradients.size(); ++i) CHECK(twice.gradients[i] == 2 * once.gradients[i]);
}

TEST_CASE("by default there are 32 buckets, and one for all distances from 128 on, as in T5") {
  auto const of = [](nn::RelativePositionBias::Options const& options) {
    return run<float>(nn::RelativePositionBias(options), 2, batch_of(1, 200), apply, 1);
  };
  auto const default_bias = of({.heads = 1});
  CHECK(default_bias == of({.heads = 1, .buckets = 32, .farthest = 128, .causal = false}));
  CHECK(default_bias != of({.heads = 1, .farthest = 100}));
}

TEST_CASE("invalid sizes are refused with the numbers") {
  CHECK_THROWS_AS(nn::RelativePositionBias({.heads = 0}), lockstep::ConfigError);
  CHECK_THROWS_WITH_AS(nn::RelativePositionBias({.heads = 2, .buckets = 7}), doctest::Contains("7 buckets"),
                       lockstep::ConfigError);
  CHECK_THROWS_AS(nn::RelativePositionBias({.heads = 2, .farthest = 8}), lockstep::ConfigError);
}
