// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/shortest.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

using namespace lockstep;

TEST_CASE("numbers are printed without zeros that say nothing, and read back as equal numbers") {
  CHECK(shortest(-1.0) == "-1");
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(0.1f) == "0.1");
  CHECK(shortest(1e-5) == "1e-05");
  CHECK(shortest(1e300) == "1e+300");
  CHECK(shortest(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(shortest(12) == "12");
  CHECK(shortest(bfloat16(0.5f)) == "0.5");
  CHECK(shortest(float16(-2.0f)) == "-2");
  for (double const number : {1.0 / 3, 4.9e-324, 0.30000000000000004})
    CHECK(std::strtod(shortest(number).c_str(), nullptr) == number);
}
