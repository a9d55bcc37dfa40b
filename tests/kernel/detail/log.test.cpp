// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

using namespace lockstep;

namespace {
/// Returns the distance in units in the last place of the exact result.
double units_off(float x) {
  double const exact = std::log(static_cast<double>(x));
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(kernel::detail::log(x)) - exact) / std::ldexp(1.0, exponent - 24);
}
}  // namespace

TEST_CASE("log is within 2 units in the last place") {
  double worst = 0;
  for (double x = 0.25; x <= 20; x += 3.1e-5) worst = std::max(worst, units_off(static_cast<float>(x)));
  for (double x = 1; x < 8e37; x *= 1.0037)
    worst = std::max({worst, units_off(static_cast<float>(x)), units_off(static_cast<float>(1 / x))});
  for (float next = 1; next < 1.0001f; next = std::nextafter(next, 2.0f)) worst = std::max(worst, units_off(next));
  CHECK(worst <= 2);
  CHECK(worst > 0);
}

TEST_CASE("log of one and of invalid inputs") {
  CHECK(kernel::detail::log(1.0f) == 0);
  CHECK(std::isnan(kernel::detail::log(std::numeric_limits<float>::quiet_NaN())));
  CHECK(kernel::detail::log(2.0) == std::log(2.0));
}

TEST_CASE("log has equal bits with every instruction set") {
  std::vector<float> x;
  for (float v = 1; v < 100; v += 0.0037f) x.push_back(v);
  auto const run = [&](InstructionSet set) {
    std::vector<float> y(x.size());
    with_instructions(set, [from = x.data(), to = y.data(), n = static_cast<Index>(x.size())] {
      for (Index i = 0; i < n; ++i) to[i] = kernel::detail::log(from[i]);
    });
    return y;
  };
  auto const baseline = run(InstructionSet::baseline), best = run(best_instruction_set());
  CHECK(std::memcmp(baseline.data(), best.data(), x.size() * sizeof(float)) == 0);
}
