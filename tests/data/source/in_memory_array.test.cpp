// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/in_memory_array.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
void count(std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i);
}
constexpr data::NumberType bytes{'u', 1}, shorts{'u', 2};
}  // namespace

TEST_CASE("an array in memory has the rows that were written, and copies share them") {
  auto const array = [] {
    auto const made = data::in_memory_array("made.h5", shorts, {2, 3}, count, "");
    return data::FileArray(made);
  }();
  CHECK(array.path() == "made.h5");
  CHECK(array.shape() == std::vector<Index>{2, 3});
  CHECK(array.numbers<std::uint16_t>() == std::vector<std::uint16_t>{0x0100, 0x0302, 0x0504, 0x0706, 0x0908, 0x0b0a});
  auto const swapped = data::in_memory_array("made.h5", shorts, {3}, count, "", data::FileArray::Order::swapped);
  CHECK(swapped.numbers<std::uint16_t>() == std::vector<std::uint16_t>{0x0001, 0x0203, 0x0405});
  CHECK(array.fingerprint() != swapped.fingerprint());
}

TEST_CASE("an array in memory may be empty, and one that no memory holds is refused before it is written") {
  CHECK(data::in_memory_array("made.h5", bytes, {0, 3}, count, "").rows() == 0);
  auto const fail = [](std::span<std::byte>) { FAIL("it is written"); };
  auto const huge = [&] {
    static_cast<void>(data::in_memory_array("made.h5", bytes, {Index{1} << 50}, fail, "split it"));
  };
  CHECK_THROWS_WITH_AS(huge(), doctest::Contains("made.h5: needs 1048576.0 GiB of memory, and "), OutOfMemoryError);
  CHECK_THROWS_WITH_AS(huge(), doctest::Contains("; split it"), OutOfMemoryError);
  CHECK_THROWS_AS(static_cast<void>(data::in_memory_array("made.h5", shorts, {Index{1} << 62, 4}, fail, "")),
                  DataError);
  CHECK_THROWS_AS(static_cast<void>(data::in_memory_array("made.h5", shorts, {-1}, fail, "")), DataError);
}
