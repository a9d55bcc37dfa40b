// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/decoding_cache.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {
using Cache = nn::DecodingCache<float>;
using Layout = kernel::SequenceLayout<HostSpace>;

/// Sequences of `length` tokens.
struct Pass {
  std::vector<Index> positions;
  std::vector<float> values;
  Layout layout;
  Pass(Index rows, Index length, float first) : positions(static_cast<std::size_t>(rows)) {
    values.resize(static_cast<std::size_t>(rows * length));
    for (auto& value : values) value = first++;
    layout = Layout::padded(length, {}, {positions.data(), {rows}});
  }
  TensorView<float, 2, HostSpace> view() { return {values.data(), {std::ssize(values), 1}}; }
};
std::vector<float> all(TensorView<float, 2, HostSpace> x) { return {x.data, x.data + x.size()}; }
}  // namespace

TEST_CASE("tokens are appended to their sequence") {
  Cache cache;
  CHECK_FALSE(cache.is_decoding());
  cache.begin_decoding_pass(0);
  Pass begun(2, 2, 1), next(2, 1, 10);
  CHECK(all(cache.append(begun.view(), begun.layout)) == std::vector<float>{1, 2, 3, 4});
  CHECK(cache.appended_tokens() == 2);
  cache.begin_decoding_pass(2);
  CHECK(cache.cached_tokens() == 2);
  CHECK(all(cache.append(next.view(), next.layout)) == std::vector<float>{1, 2, 10, 3, 4, 11});
  cache.end_decoding();
  CHECK(cache.cached_tokens() == 0);
}

TEST_CASE("selected rows continue in their order") {
  Cache cache;
  cache.begin_decoding_pass(0);
  Pass begun(3, 1, 1), next(2, 1, 10);
  static_cast<void>(cache.append(begun.view(), begun.layout));
  cache.recurrent_state(begun.layout, 1)(2, 0) = 7;
  Index const rows[] = {2, 0};
  cache.select_rows(rows);
  cache.begin_decoding_pass(1);
  CHECK(all(cache.append(next.view(), next.layout)) == std::vector<float>{3, 10, 1, 11});
  auto const state = cache.recurrent_state(next.layout, 1);
  CHECK(state(0, 0) == 7);
  CHECK(state(1, 0) == 0);
  Index const none[] = {5};
  CHECK_THROWS_AS(cache.select_rows(none), ShapeError);
}

TEST_CASE("a later pass with several tokens or other sequences is refused") {
  Cache cache;
  cache.begin_decoding_pass(0);
  Pass begun(2, 1, 1), two(2, 2, 1), other(3, 1, 1);
  static_cast<void>(cache.append(begun.view(), begun.layout));
  cache.begin_decoding_pass(1);
  CHECK_THROWS_AS(static_cast<void>(cache.append(two.view(), two.layout)), ShapeError);
  cache.begin_decoding_pass(1);
  CHECK_THROWS_AS(static_cast<void>(cache.append(other.view(), other.layout)), ShapeError);
}

TEST_CASE("layers that need whole sequences refuse to decode") {
  Cache cache;
  CHECK_NOTHROW(cache.expect_whole_sequences("mean_pool"));
  cache.begin_decoding_pass(0);
  CHECK_THROWS_AS(cache.expect_whole_sequences("mean_pool"), ConfigError);
}
