// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/encode_once.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

TEST_CASE("in training it is a plain call") {
  auto const encoded = [](auto& context, nn::Linear const& layer, auto const& x) {
    return nn::encode_once(context, [&] { return layer.forward(context, x); });
  };
  auto const plain = [](auto& context, nn::Linear const& layer, auto const& x) { return layer.forward(context, x); };
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 0, 2}};
  CHECK(check(nn::Linear(5, 5), 5, batch, encoded).ok());
  CHECK(run<float>(nn::Linear(5, 5), 5, batch, encoded, 1) == run<float>(nn::Linear(5, 5), 5, batch, plain, 1));
}

TEST_CASE("in token-by-token decoding the first result is kept, and its inputs may be released") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  using Memory = nn::Sequence<float, HostSpace>;
  int calls = 0;
  bool kept_inside = false;
  auto const pass = [&](Index earlier, std::optional<Index> rows) {
    earlier == 0 ? context.cache().begin_sequences() : context.cache().continue_sequences();
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
    std::vector<Index> offsets{0, 2, 5}, positions{8, 9};
    if (rows) offsets.resize(static_cast<std::size_t>(*rows + 1)), positions.resize(static_cast<std::size_t>(*rows));
    auto const ragged = nn::encode_once(context, [&] {
      ++calls, kept_inside = kept_inside || context.cache().is_decoding();
      auto const x = context.variable<2>({offsets.back(), 3});
      for (Index i = 0; i < x.value.size(); ++i) x.value.data[i] = static_cast<float>(i);
      return Memory{x, nn::SequenceLayout<HostSpace>::ragged(offsets.back(), 3, {offsets.data(), {std::ssize(offsets)}},
                                                             {positions.data(), {std::ssize(positions)}})};
    });
    std::vector<std::int32_t> lengths{1, 2};
    auto const padded = nn::encode_once(context, [&] {
      ++calls;
      return Memory{context.variable<2>({4, 1}),
                    nn::SequenceLayout<HostSpace>::padded(2, {lengths.data(), {2}}, {positions.data(), {2}})};
    });
    lengths.assign(2, 0), offsets.assign(offsets.size(), 0), positions.assign(positions.size(), 0);
    return std::pair{ragged, padded};
  };
  for (Index earlier : {0, 4, 5}) {
    auto const [ragged, padded] = pass(earlier, std::nullopt);
    CHECK(calls == 2);
    CHECK(context.cache().is_decoding());
    CHECK(context.cache().is_cached_memory(ragged.tokens.value));
    CHECK(context.cache().is_cached_memory(padded.tokens.value));
    CHECK_FALSE(context.cache().is_cached_memory(context.variable<2>({5, 3}).value));
    CHECK(ragged.tokens.value.extent == lockstep::Extents<2>{5, 3});
    CHECK(ragged.tokens.value(4, 2) == 14);
    CHECK(ragged.layout.tokens(1) == 3);
    CHECK(ragged.layout.positions(1) == 9);
    CHECK(padded.layout.tokens(0) == 1);
    CHECK(padded.layout.end(1) == 4);
  }
  CHECK_FALSE(kept_inside);
  auto const begun = pass(0, 1).first;  // others begin
  CHECK(calls == 4);
  CHECK(begun.layout.slots == 2);
  context.cache().end_decoding();
  CHECK_FALSE(context.cache().is_cached_memory(begun.tokens.value));
  CHECK(nn::encode_once(context, [&] { return ++calls, begun; }).layout.slots == 2);
  CHECK(calls == 5);
}
