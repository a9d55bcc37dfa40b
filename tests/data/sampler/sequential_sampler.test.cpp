// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/sequential_sampler.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct Numbers {
  Index count;
  Index size() const { return count; }
  int get(Index i) const { return static_cast<int>(i); }
};
}  // namespace

TEST_CASE("positions are indices, in every epoch") {
  for (Index count : {0, 1, 33}) {
    auto const order = data::SequentialSampler{}.over(Numbers{count});
    CHECK(order.size() == count);
    for (Index position = 0; position < count; ++position) {
      CHECK(order.in(0)(position) == position);
      CHECK(order.in(7)(position) == position);
    }
  }
}
