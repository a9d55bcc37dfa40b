// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/detail/row_parts.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

using namespace lockstep;

TEST_CASE("parts grow up to half a mebibyte, and shrink above one mebibyte") {
  using train::detail::next_part;
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  CHECK(next_part(1, 0) == 2);
  CHECK(next_part(8, mebibyte / 2 - 1) == 16);
  CHECK(next_part(8, mebibyte) == 8);
  CHECK(next_part(8, 4 * mebibyte) == 1);
  CHECK(next_part(8, mebibyte + 1) == 4);
  CHECK(next_part(1, 100 * mebibyte) == 1);
}

TEST_CASE("the first step ends a part, then parts double while rows are few, and the last step ends one") {
  auto const broadcast = [](std::string const& rows, int) { return rows; };
  train::detail::RowParts parts;
  std::vector<Index> ends;
  std::string received;
  for (Index step = 0; step < 20; ++step) {
    if (!parts.ends_with_step(step == 19)) continue;
    ends.push_back(step);
    parts.exchange(0, 1, std::to_string(step) + ";", broadcast, [&](std::string const& rows) { received += rows; });
  }
  CHECK(ends == std::vector<Index>{0, 2, 6, 14, 19});
  CHECK(received == "0;2;6;14;19;");
}
