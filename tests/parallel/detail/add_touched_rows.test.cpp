// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/detail/add_touched_rows.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

TEST_CASE("rows touched only by other ranks are added as zeros, own and untouched rows do not change") {
  std::vector<float> gradients(8 + 70 * 2, 5.0f);
  std::vector<std::uint64_t> bits(2), others(2);
  kernel::TouchedRows const mine{8, 70, 2, bits.data()}, theirs{8, 70, 2, others.data()};
  mine.insert(0), mine.insert(64);
  theirs.insert(64), theirs.insert(3), theirs.insert(69);
  parallel::detail::add_touched_rows(mine, others.data(), gradients.data());
  for (Index row = 0; row < 70; ++row) {
    CHECK(mine.contains(row) == (row == 0 || row == 3 || row == 64 || row == 69));
    for (Index j = 0; j < 2; ++j)
      CHECK(gradients[static_cast<std::size_t>(8 + row * 2 + j)] == (row == 3 || row == 69 ? 0.0f : 5.0f));
  }
  for (std::size_t i = 0; i < 8; ++i) CHECK(gradients[i] == 5);
}
