// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/detail/normal_quantile.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace detail = lockstep::kernel::detail;

namespace {
float quantile(std::uint32_t bits) { return detail::normal_quantile(bits, std::sqrt(detail::squared_tail(bits))); }
}  // namespace

TEST_CASE("the fraction of the distribution below a quantile matches the bits") {
  // The fraction is measured in the quantile's half: from the middle if it is near, else from the end. A relative error
  // e of the quantile changes the fraction by e x density(x), which near the end is at most e x^2 of the tail.
  double worst = 0;
  auto const check = [&](std::uint32_t bits) {
    auto const x = static_cast<long double>(quantile(bits));
    bool const upper = bits >> 31;
    REQUIRE((x > 0) == upper);
    auto const steps = static_cast<long double>(upper ? ~bits : bits) + 0.5L;  // from the end
    auto const beyond = steps * 0x1p-32L, found = std::erfc(std::abs(x) * std::sqrt(0.5L)) / 2;
    auto const density = std::exp(-x * x / 2) * 0.39894228040143267794L;
    worst = std::max(worst, static_cast<double>(std::abs(found - beyond) / (std::abs(x) * density)));
  };
  for (std::uint32_t i = 0; i < 200'000; ++i) check(i * 2654435761u);
  for (std::uint32_t i = 0; i < 2000; ++i) {  // the ends, the middle and the boundaries of the branches
    check(i);
    check(~i);
    check(0x80000000u + i);
    check(0x80000000u - 1 - i);
    check(static_cast<std::uint32_t>(0.925 * 0x1p32) + i - 1000);
  }
  CHECK(worst <= 0x1p-20);
}

TEST_CASE("every quantile has its negative, and the largest are finite") {
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    auto const bits = i * 40503u;
    REQUIRE(quantile(bits) == -quantile(~bits));
  }
  CHECK(quantile(~0u) == doctest::Approx(6.338).epsilon(1e-3));
  CHECK(quantile(0) == -quantile(~0u));
}
