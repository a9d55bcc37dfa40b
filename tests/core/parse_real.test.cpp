// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/parse_real.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

namespace {
template <class T>
std::errc read(std::string_view text, T& out) {
  auto const [end, error] = lockstep::parse_real(text.data(), text.data() + text.size(), out);
  if (error == std::errc{}) CHECK(end == text.data() + text.size());
  return error;
}
}  // namespace

TEST_CASE("what is too small is 0, with its sign; what is too large, or no number, is an error") {
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
