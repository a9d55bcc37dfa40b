// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/keys_and_values.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

/// Appends tokens in steps of these sizes, and compares with the definition of the order.
template <class Scalar>
void check(Index heads, Index head_width, std::vector<Index> const& steps) {
  constexpr Index panel = kernel::KeysAndValues<Scalar>::panel;
  kernel::KeysAndValues<Scalar> kept(heads, head_width);
  auto const width = heads * head_width;
  auto const key = [](Index token, Index channel) { return static_cast<Scalar>(1000 * token + channel + 1); };
  Index tokens = 0;
  for (auto const count : steps) {
    std::vector<Scalar> keys, values;
    for (Index t = tokens; t < tokens + count; ++t)
      for (Index c = 0; c < width; ++c) {
        keys.push_back(key(t, c));
        values.push_back(-key(t, c));
      }
    kept.append(keys.data(), values.data(), count);
    tokens += count;
    REQUIRE(kept.tokens() == tokens);
    auto const rounded = (tokens + panel - 1) / panel * panel;
    CHECK(kept.bytes() == (2 * rounded * width + panel) * Index{sizeof(Scalar)});  // no more than a panel is unused
    bool equal = true;
    for (Index head = 0; head < heads; ++head)
      for (Index c = 0; c < head_width; ++c) {
        for (Index t = 0; t < rounded; ++t) {
          auto const got = kept.keys(head)[t / panel * panel * head_width + c * panel + t % panel];
          equal = equal && got == (t < tokens ? key(t, head * head_width + c) : Scalar{0});
        }
        for (Index t = 0; t < tokens; ++t)
          equal = equal && kept.values(head)[t * head_width + c] == -key(t, head * head_width + c);
      }
    CHECK(equal);
  }
}

}  // namespace

TEST_CASE("keys are kept by panels, and values by tokens") {
  check<float>(1, 1, {1, 1, 61, 1, 1});
  check<float>(3, 5, {64, 1, 63, 1});
  check<double>(2, 8, {31, 1, 1, 100});
  kernel::KeysAndValues<float> const none(2, 4);
  CHECK(none.tokens() == 0);
  CHECK(none.bytes() == 0);
  CHECK(none.heads() == 2);
  CHECK(none.head_width() == 4);
}
