// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/exp.hpp>

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
  double const exact = std::exp(static_cast<double>(x));
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(kernel::detail::exp(x)) - exact) / std::ldexp(1.0, exponent - 24);
}
}  // namespace

TEST_CASE("exp is within 2 units in the last place") {
  double worst = 0;
  for (double x = -87.33; x <= 88; x += 1.7e-4) worst = std::max(worst, units_off(static_cast<float>(x)));
  for (float tiny = 1; tiny > 1e-30f; tiny /= 3) worst = std::max({worst, units_off(tiny), units_off(-tiny)});
  CHECK(worst <= 2);
  CHECK(worst > 0);
}

TEST_CASE("exp at the limits of its range") {
  using Limits = std::numeric_limits<float>;
  CHECK(kernel::detail::exp(0.0f) == 1);
  CHECK(kernel::detail::exp(-0.0f) == 1);
  CHECK(kernel::detail::exp(-88.0f) == 0);
  CHECK(kernel::detail::exp(Limits::lowest()) == 0);
  CHECK(kernel::detail::exp(-Limits::infinity()) == 0);
  CHECK(std::isnan(kernel::detail::exp(Limits::quiet_NaN())));
}

TEST_CASE("exp has equal bits with every instruction set") {
  std::vector<float> x;
  for (float v = -90; v < 10; v += 0.0137f) x.push_back(v);
  auto const run = [&](InstructionSet set) {
    std::vector<float> y(x.size());
    with_instructions(set, [from = x.data(), to = y.data(), n = static_cast<Index>(x.size())] {
      for (Index i = 0; i < n; ++i) to[i] = kernel::detail::exp(from[i]);
    });
    return y;
  };
  auto const baseline = run(InstructionSet::baseline), best = run(best_instruction_set());
  CHECK(std::memcmp(baseline.data(), best.data(), x.size() * sizeof(float)) == 0);
}
