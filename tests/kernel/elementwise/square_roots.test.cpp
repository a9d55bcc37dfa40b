// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/square_roots.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace lockstep;

namespace {

/// Calls check(square_roots) for each instruction set of this processor.
void with_every_set(auto const& check) {
  for (auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > best_instruction_set()) continue;
    CAPTURE(to_string(set));
    check([&](auto* x, Index count) {
      with_instructions(set, [=](auto vectors) { kernel::square_roots(vectors, x, count); });
    });
  }
}

}  // namespace

TEST_CASE_TEMPLATE("every element is the correctly rounded root, and no element beyond the end is written", T, float,
                   double) {
  with_every_set([](auto const& square_roots) {
    for (Index count : {0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33}) {
      std::vector<T> x(static_cast<std::size_t>(count) + 1);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(0.1 + 1.7 * static_cast<double>(i * i));
      auto const before = x;
      square_roots(x.data(), count);
      for (std::size_t i = 0; i + 1 < x.size(); ++i) CHECK(x[i] == std::sqrt(before[i]));
      CHECK(x.back() == before.back());
    }
    T special[20] = {0, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::denorm_min(), -1};
    square_roots(special, 20);
    CHECK(special[0] == 0);
    CHECK(std::isinf(special[1]));
    CHECK(special[2] == std::sqrt(std::numeric_limits<T>::denorm_min()));
    CHECK(std::isnan(special[3]));
  });
}
