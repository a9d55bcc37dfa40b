// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/cached_attention.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/memory/stream.hpp>

using namespace lockstep;

namespace {

struct Case {
  std::vector<Index> tokens;  // of each sequence
  Index heads, shared, head_width;
  bool biased;
};

template <class Scalar>
std::vector<Scalar> random_numbers(Index count, std::uint64_t seed) {
  std::vector<Scalar> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Scalar>(4 * uniform(Philox(seed), i) - 2);
  return all;
}
template <class Scalar>
TensorView<Scalar const, 2, HostSpace> matrix(std::vector<Scalar> const& x, Index columns) {
  return {x.data(), {std::ssize(x) / columns, columns}};
}

/// Compares with the last query of causal attention over whole sequences.
template <class Scalar>
void compare(Case const& c, int threads) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  using Whole = kernel::Attention<HostSpace>;
  using Cached = kernel::CachedAttention<HostSpace>;
  auto const rows = std::ssize(c.tokens), width = c.heads * c.head_width, key_width = width / c.shared;
  std::vector<Index> offsets{0}, positions(c.tokens.size());
  Index longest = 0;
  for (auto const tokens : c.tokens) {
    offsets.push_back(offsets.back() + tokens);
    longest = std::max(longest, tokens);
  }
  auto const slots = offsets.back();
  auto const query = random_numbers<Scalar>(slots * width, 1), key = random_numbers<Scalar>(slots * key_width, 2),
             value = random_numbers<Scalar>(slots * key_width, 3),
             bias = random_numbers<Scalar>(c.heads * (2 * longest - 1), 4);
  auto const layout = kernel::SequenceLayout<HostSpace>::ragged(slots, longest, {offsets.data(), {rows + 1}},
                                                                {positions.data(), {rows}});
  Whole::Inputs<Scalar> in{.query = matrix(query, width),
                           .key = matrix(key, key_width),
                           .value = matrix(value, key_width),
                           .queries = layout,
                           .keys = layout,
                           .heads = c.heads,
                           .scale = 0.3,
                           .causal = true,
                           .query_heads_per_key_head = c.shared};
  if (c.biased) in.bias = matrix(bias, 2 * longest - 1);
  std::vector<Scalar> out(query.size()), log_sums(static_cast<std::size_t>(rows * c.heads * longest));
  std::vector<Scalar> memory(static_cast<std::size_t>(Whole::forward_scratch<Scalar>(stream, in)));
  Whole::forward<Scalar>(stream, in, {out.data(), {slots, width}}, {log_sums.data(), {rows * c.heads, longest}},
                         {memory.data(), {std::ssize(memory)}});

  std::vector<std::shared_ptr<kernel::KeysAndValues<Scalar>>> kept;
  std::vector<Scalar> last, distances;  // by distance up to the query, as a decoding pass makes them
  std::vector<Index> first;
  for (Index row = 0; row < rows; ++row) {
    auto const start = offsets[static_cast<std::size_t>(row)], end = offsets[static_cast<std::size_t>(row) + 1];
    auto& each = kept.emplace_back(std::make_shared<kernel::KeysAndValues<Scalar>>(c.heads / c.shared, c.head_width));
    auto const begun = (end - start) / 2;  // some at once, the others one by one
    each->append(key.data() + start * key_width, value.data() + start * key_width, begun);
    for (Index t = start + begun; t < end; ++t)
      each->append(key.data() + t * key_width, value.data() + t * key_width, 1);
    CHECK(each->tokens() == end - start);
    last.insert(last.end(), query.begin() + (end - 1) * width, query.begin() + end * width);
    first.push_back(longest - (end - start));
  }
  for (Index head = 0; head < c.heads; ++head)
    for (Index d = 0; d < longest; ++d)
      distances.push_back(bias[static_cast<std::size_t>(head * (2 * longest - 1) + d)]);
  Cached::Inputs<Scalar> next{.query = matrix(last, width),
                              .attended = kept,
                              .heads = c.heads,
                              .scale = 0.3,
                              .query_heads_per_key_head = c.shared,
                              .first_bias = first.data()};
  if (c.biased) next.bias = matrix(distances, longest);
  std::vector<Scalar> got(last.size());
  memory.assign(static_cast<std::size_t>(Cached::scratch<Scalar>(stream, next)), Scalar{1});
  Cached::forward<Scalar>(stream, next, {got.data(), {rows, width}}, {memory.data(), {std::ssize(memory)}});
  for (Index row = 0; row < rows; ++row)
    for (Index channel = 0; channel < width; ++channel)
      CHECK(got[static_cast<std::size_t>(row * width + channel)] ==
            out[static_cast<std::size_t>((offsets[static_cast<std::size_t>(row) + 1] - 1) * width + channel)]);
}

}  // namespace

TEST_CASE("one query per sequence attends to kept keys as the last query of whole sequences, with equal bits") {
  for (Case const& each :
       {Case{{1}, 1, 1, 1, false}, Case{{5, 1, 31, 32, 33, 64, 65, 130}, 2, 1, 8, true},
        Case{{63, 64, 65, 3}, 4, 2, 64, true}, Case{{40, 200}, 6, 3, 33, false}, Case{{7, 129}, 2, 2, 80, true}})
    for (int const threads : {1, 3}) {
      compare<float>(each, threads);
      compare<double>(each, threads);
    }
}

TEST_CASE("keys of other shapes are refused") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  auto const kept = std::make_shared<kernel::KeysAndValues<float>>(1, 4);
  std::vector<float> const query(8), bias(2);
  kept->append(query.data(), query.data(), 2);
  std::vector<std::shared_ptr<kernel::KeysAndValues<float>>> const attended{kept};
  std::vector<float> out(8), memory(64);
  Index const first = 1;
  using Cached = kernel::CachedAttention<HostSpace>;
  auto const refuses = [&](Cached::Inputs<float> const& in, char const* why) {
    CHECK_THROWS_WITH_AS(Cached::forward<float>(stream, in, {out.data(), in.query.extent}, {memory.data(), {64}}),
                         doctest::Contains(why), ShapeError);
  };
  refuses({.query = {query.data(), {2, 4}}, .attended = attended, .heads = 1, .scale = 1}, "the keys of 1 sequences");
  refuses({.query = {query.data(), {1, 8}}, .attended = attended, .heads = 1, .scale = 1},
          "have 1 heads of width 4, but the queries need 1 of width 8");
  refuses({.query = {query.data(), {1, 4}},
           .attended = attended,
           .heads = 1,
           .scale = 1,
           .bias = {bias.data(), {1, 2}},
           .first_bias = &first},
          "bias is [1, 2]; 1 heads and sequence 0 need [1, 3]");
}
