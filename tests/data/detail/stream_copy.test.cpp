// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/detail/stream_copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep::data::detail;

TEST_CASE("copies of any size and alignment are exact and write nothing else") {
  std::vector<unsigned char> from(stream_bytes + 400), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + i / 251);
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{33}, stream_bytes - 1, stream_bytes,
                            stream_bytes + 1, stream_bytes + 63, stream_bytes + 64, stream_bytes + 200}) {
    for (std::size_t offset : {0u, 1u, 16u, 63u, 64u}) {
      std::fill(to.begin(), to.end(), static_cast<unsigned char>(7));
      stream_copy(to.data() + offset, from.data() + 3, bytes);
      REQUIRE(std::equal(to.begin() + static_cast<std::ptrdiff_t>(offset),
                         to.begin() + static_cast<std::ptrdiff_t>(offset + bytes), from.begin() + 3));
      auto const is_untouched = [](unsigned char c) { return c == 7; };
      REQUIRE(std::all_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(offset), is_untouched));
      REQUIRE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(offset + bytes), to.end(), is_untouched));
    }
  }
}

TEST_CASE_TEMPLATE("fills write every type", T, std::uint8_t, std::int16_t, float, double, long double) {
  auto const many = stream_bytes / sizeof(T);
  std::vector<T> to(many + 100);
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, many - 1, many, many + 33}) {
    for (std::size_t offset : {0u, 1u, 5u}) {
      std::fill(to.begin(), to.end(), T{7});
      stream_fill(to.data() + offset, to.data() + offset + count, T{3});
      REQUIRE(static_cast<std::size_t>(std::count(to.begin(), to.end(), T{3})) == count);
      REQUIRE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(offset),
                          to.begin() + static_cast<std::ptrdiff_t>(offset + count), [](T x) { return x == T{3}; }));
    }
  }
}
