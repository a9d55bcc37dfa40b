// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/widen.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE_TEMPLATE("16-bit numbers are widened, also in place and unaligned", Half, float16, bfloat16) {
  std::vector<Half> halves;
  for (int i = 0; i < 1000; ++i) halves.emplace_back(static_cast<float>(i * i - 400) / 16);
  auto const bytes = std::as_bytes(std::span(halves));
  auto const check = [&](auto wide) {
    auto const all = std::as_writable_bytes(std::span(wide));
    auto const last = all.last(bytes.size());
    std::memcpy(last.data(), bytes.data(), bytes.size());
    widen<Half>(last, std::span(wide));
    for (std::size_t i = 0; i < halves.size(); ++i) REQUIRE(wide[i] == static_cast<float>(halves[i]));
  };
  check(std::vector<float>(halves.size()));
  check(std::vector<double>(halves.size()));

  std::vector<std::byte> shifted(bytes.size() + 1);
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  std::vector<float> wide(halves.size());
  widen<Half>(std::span<std::byte const>(shifted).subspan(1), std::span(wide));
  for (std::size_t i = 0; i < halves.size(); ++i) REQUIRE(wide[i] == static_cast<float>(halves[i]));
}

TEST_CASE_TEMPLATE("integers are widened, also in place and unaligned", Narrow, std::uint8_t, std::int8_t,
                   std::uint16_t, std::int16_t, std::int32_t) {
  std::vector<Narrow> numbers{std::numeric_limits<Narrow>::min(), std::numeric_limits<Narrow>::max()};
  for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<Narrow>(i * 37 - 400));
  auto const bytes = std::as_bytes(std::span(numbers));
  std::vector<std::int64_t> wide(numbers.size());
  auto const last = std::as_writable_bytes(std::span(wide)).last(bytes.size());
  std::memcpy(last.data(), bytes.data(), bytes.size());
  widen<Narrow>(last, std::span(wide));
  for (std::size_t i = 0; i < numbers.size(); ++i) REQUIRE(wide[i] == numbers[i]);

  std::vector<std::byte> shifted(bytes.size() + 1);
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  widen<Narrow>(std::span<std::byte const>(shifted).subspan(1), std::span(wide));
  for (std::size_t i = 0; i < numbers.size(); ++i) REQUIRE(wide[i] == numbers[i]);
}

static_assert(Widens<std::uint8_t, std::int32_t> && Widens<std::uint16_t, std::uint32_t>);
static_assert(Widens<std::int8_t, std::int16_t> && !Widens<std::int8_t, std::uint16_t>);
static_assert(!Widens<std::uint16_t, std::int16_t> && !Widens<std::int64_t, std::int32_t>);
static_assert(!Widens<std::int16_t, float> && !Widens<float16, std::int32_t>);
