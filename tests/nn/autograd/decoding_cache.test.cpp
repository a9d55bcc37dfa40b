// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/decoding_cache.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {
using Cache = nn::DecodingCache<float>;
using Layout = kernel::SequenceLayout<HostSpace>;

/// Sequences of these lengths, of tokens of width 1.
struct Pass {
  std::vector<Index> positions, offsets{0};
  std::vector<float> values;
  Layout layout;
  Pass(std::vector<Index> const& lengths, float first) : positions(lengths.size()) {
    Index longest = 0;
    for (auto const length : lengths) {
      offsets.push_back(offsets.back() + length);
      longest = std::max(longest, length);
    }
    for (Index i = 0; i < offsets.back(); ++i) values.push_back(first++);
    layout = Layout::ragged(offsets.back(), longest, {offsets.data(), {std::ssize(offsets)}},
                            {positions.data(), {std::ssize(positions)}});
  }
  [[nodiscard]] Cache::RealView view() const { return {values.data(), {std::ssize(values), 1}}; }
};

/// Appends, and returns the values of each sequence.
std::vector<std::vector<float>> append(Cache& cache, Pass const& pass) {
  std::vector<std::vector<float>> all;
  for (auto const& kept : cache.append(pass.view(), pass.view(), pass.layout, 1))
    all.emplace_back(kept->values(0), kept->values(0) + kept->tokens());
  return all;
}
using Values = std::vector<std::vector<float>>;
}  // namespace

TEST_CASE("tokens are appended to their sequence") {
  Cache cache;
  CHECK_FALSE(cache.is_decoding());
  cache.begin_sequences();
  CHECK(append(cache, Pass({3, 1, 2}, 1)) == Values{{1, 2, 3}, {4}, {5, 6}});
  CHECK_FALSE(cache.continues());
  CHECK(cache.cached_lengths(3) == nullptr);
  CHECK(cache.end_decoding_pass());
  cache.continue_sequences();
  CHECK(cache.continues());
  CHECK(cache.cached_tokens(0) == 3);
  CHECK(cache.min_cached_tokens() == 1);
  CHECK(cache.max_cached_tokens() == 3);
  CHECK_THROWS_WITH_AS(static_cast<void>(cache.cached_tokens()), doctest::Contains("from 1 to 3 tokens"), ShapeError);
  CHECK_THROWS_AS(static_cast<void>(cache.cached_lengths(2)), ShapeError);
  CHECK(append(cache, Pass({1, 1, 1}, 10)) == Values{{1, 2, 3, 10}, {4, 11}, {5, 6, 12}});
  CHECK(cache.end_decoding_pass());
  cache.end_decoding();
  CHECK(cache.max_cached_tokens() == 0);
  cache.continue_sequences();
  CHECK(cache.cached_tokens(1) == 2);
}

TEST_CASE("selected rows continue in their order, and release the memory of the others") {
  Cache cache;
  cache.begin_sequences();
  static_cast<void>(append(cache, Pass({1, 2, 200}, 1)));
  Pass const begun({1, 2, 200}, 1);
  cache.recurrent_state(begun.layout, 1)(2, 0) = 7;
  CHECK(cache.end_decoding_pass());
  auto const bytes = cache.key_and_value_bytes();
  Index const rows[] = {2, 0, 0};
  cache.select_rows(rows);
  cache.continue_sequences();
  Pass const next({1, 1, 1}, 10);
  auto const all = append(cache, next);  // repeated rows do not write to shared memory
  CHECK(all[0].size() == 201);
  CHECK(all[1] == std::vector<float>{1, 11});
  CHECK(all[2] == std::vector<float>{1, 12});
  auto const state = cache.recurrent_state(next.layout, 1);
  CHECK(state(0, 0) == 7);
  CHECK(state(1, 0) == 0);
  CHECK(cache.end_decoding_pass());
  Index const last[] = {1};
  cache.select_rows(last);
  CHECK(cache.sequences() == 1);
  CHECK(cache.key_and_value_bytes() < bytes / 4);
  cache.select_rows({});
  CHECK(cache.key_and_value_bytes() == 0);
  Index const none[] = {5};
  CHECK_THROWS_AS(cache.select_rows(none), ShapeError);
}

TEST_CASE("sequences begin after others") {
  Cache cache;
  cache.begin_sequences();
  CHECK(append(cache, Pass({2}, 1)) == Values{{1, 2}});
  cache.recurrent_state(Pass({2}, 1).layout, 2)(0, 1) = 7;
  CHECK(cache.end_decoding_pass());
  cache.begin_sequences(cache.sequences());
  CHECK(append(cache, Pass({1, 3}, 5)) == Values{{5}, {6, 7, 8}});  // the pass sees those that it begins
  CHECK(cache.recurrent_state(Pass({1, 3}, 5).layout, 2).extent == Extents<2>{2, 2});
  CHECK(cache.end_decoding_pass());
  cache.continue_sequences();
  CHECK(append(cache, Pass({1, 1, 1}, 10)) == Values{{1, 2, 10}, {5, 11}, {6, 7, 8, 12}});
  auto const state = cache.recurrent_state(Pass({1, 1, 1}, 10).layout, 2);
  CHECK(state(0, 1) == 7);
  CHECK(state(2, 1) == 0);
}

TEST_CASE("a later pass with several tokens or other sequences is refused, and so is a sequence without tokens") {
  Cache cache;
  auto const begin = [&] {
    cache.begin_sequences();
    static_cast<void>(append(cache, Pass({1, 1}, 1)));
    CHECK(cache.end_decoding_pass());
    cache.continue_sequences();
  };
  begin();
  CHECK_THROWS_WITH_AS(static_cast<void>(append(cache, Pass({1, 2}, 1))),
                       doctest::Contains("sequence 1 of the batch has 2"), ShapeError);
  begin();
  CHECK_THROWS_WITH_AS(static_cast<void>(append(cache, Pass({1, 1, 1}, 1))),
                       doctest::Contains("continues 3 sequences, but the passes that began them had 2"), ShapeError);
  cache.begin_sequences();
  CHECK_THROWS_WITH_AS(static_cast<void>(append(cache, Pass({1, 0}, 1))),
                       doctest::Contains("sequence 1 of the batch has no tokens"), ShapeError);
  cache.begin_sequences();
  static_cast<void>(append(cache, Pass({2}, 1)));
  CHECK_THROWS_WITH_AS(static_cast<void>(append(cache, Pass({3}, 1))),
                       doctest::Contains("has 2 tokens in one layer and 3 in another"), ShapeError);
}

TEST_CASE("layers that need whole sequences refuse to decode") {
  Cache cache;
  CHECK_NOTHROW(cache.expect_whole_sequences("mean_pool"));
  cache.begin_sequences();
  CHECK_THROWS_AS(cache.expect_whole_sequences("mean_pool"), ConfigError);
  CHECK_FALSE(cache.end_decoding_pass());
}
