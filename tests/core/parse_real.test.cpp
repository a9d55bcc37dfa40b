// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/parse_real.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace {
template <class T>
std::errc read(std::string_view text, T& out) {
  auto const [end, error] = lockstep::parse_real(text.data(), text.data() + text.size(), out);
  if (error == std::errc{}) CHECK(end == text.data() + text.size());
  return error;
}
}  // namespace

TEST_CASE("too small numbers are 0 with a sign; too large ones and non-numbers are errors") {
  for (auto const* small : {"1e-46", "0.000001e-41", "1000e-60", "1e-99999999999999999999", "0.0e99999"}) {
    float out = 1;
    CHECK(read(small, out) == std::errc{});
    CHECK(out == 0);
  }
  double out = 1;
  CHECK(read("-1e-400", out) == std::errc{});
  CHECK(std::signbit(out));
  for (auto const* large : {"1e400", "-1e400", "0.001e400", "1000e307", "1e99999999999999999999"}) {
    CAPTURE(large);
    CHECK(read(large, out) == std::errc::result_out_of_range);
  }
  CHECK(read("1.5e-3", out) == std::errc{});
  CHECK(out == 1.5e-3);
  CHECK(read("5e-324", out) == std::errc{});
  CHECK(out > 0);
  CHECK(read("x", out) == std::errc::invalid_argument);
}

namespace {
template <class T, class Bits>
void check_equal_to_from_chars(std::string const& text) {
  CAPTURE(text);
  T ours{}, theirs{};
  auto const* const end = text.data() + text.size();
  auto const a = lockstep::parse_real(text.data(), end, ours), b = std::from_chars(text.data(), end, theirs);
  CHECK(a.ptr == b.ptr);
  if (b.ec == std::errc::result_out_of_range) return;
  CHECK(a.ec == b.ec);
  if (b.ec == std::errc{}) CHECK(std::bit_cast<Bits>(ours) == std::bit_cast<Bits>(theirs));
}
void check_both(std::string const& text) {
  check_equal_to_from_chars<float, std::uint32_t>(text);
  check_equal_to_from_chars<double, std::uint64_t>(text);
}
}  // namespace

TEST_CASE("values and ends are equal to std::from_chars, for short and long numbers and any text after them") {
  std::mt19937_64 random(1);
  auto const up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  auto const digits = [&](std::uint64_t count) {
    std::string out;
    for (std::uint64_t i = 0; i < count; ++i) out += static_cast<char>('0' + up_to(9));
    return out;
  };
  for (int i = 0; i < 20000; ++i) {
    auto text = (up_to(1) ? "-" : "") + digits(up_to(12)) + (up_to(3) ? "." : "") + digits(up_to(12));
    if (up_to(1)) text += (up_to(1) ? "e" : "E") + std::string(up_to(1) ? "-" : up_to(1) ? "+" : "") + digits(up_to(3));
    check_both(text + (up_to(1) ? " 1" : ""));
  }
  for (auto const* text : {"16777217",
                           "16777219",
                           "1677721.7",
                           "16777217.0000000001",
                           "33554434e-1",
                           "9007199254740993",
                           "9007199254740992",
                           "0.1e23",
                           "1e22",
                           "1e23",
                           "-0",
                           "-0.0e-5",
                           ".",
                           "-",
                           "-.",
                           ".5",
                           "5.",
                           "5.e1",
                           "5.e",
                           "5e",
                           "5e+",
                           "5e-",
                           "5e1x",
                           "+1",
                           "1e0001",
                           "1e00001",
                           "00000000000000000001",
                           "1..2",
                           "1.2.3",
                           "nan",
                           "inf",
                           "-inf",
                           "1e-22",
                           "1e-23",
                           "8388608.5",
                           "8388609.5",
                           "0.000000000000000000001",
                           "12345678901234567890.5"})
    check_both(text);
}
