// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/lanes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <lockstep/core/instruction_set.hpp>

#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::values;

TEST_CASE_TEMPLATE("sum, dot and largest at all sizes near the lanes, with every instruction set", T, float, double) {
  for (Index n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 1000}) {
    auto const x = values<T>(n, 1), y = values<T>(n, 2);
    double sum = 0, dot = 0, magnitude = 0, products = 0, most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
      sum += a;
      dot += a * b;
      magnitude += std::abs(a);
      products += std::abs(a * b);
      most = std::max(most, a);
    }
    // Each term is in at most n / lanes + lanes additions (the tail in lanes more), and a product rounds, too; the
    // double reference has n.
    double const lanes = 64 / sizeof(T), count = static_cast<double>(n);
    double const bound = std::numeric_limits<T>::epsilon() / 2 * (count / lanes + 2 * lanes + 1) + 0x1p-53 * count;
    for (auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
      if (set > best_instruction_set()) continue;
      T sums = 0, dots = 0, mosts = 0;
      with_instructions(set, [&](auto vectors) {
        sums = kernel::detail::sum(vectors, x.data(), n);
        dots = kernel::detail::dot(vectors, x.data(), y.data(), n);
        mosts = kernel::detail::largest(vectors, x.data(), n);
      });
      CHECK(std::abs(static_cast<double>(sums) - sum) <= bound * magnitude);
      CHECK(std::abs(static_cast<double>(dots) - dot) <= bound * products);
      CHECK(static_cast<double>(mosts) == most);
      CHECK(sums == kernel::detail::sum(Vectors<16>{}, x.data(), n));
      CHECK(dots == kernel::detail::dot(Vectors<16>{}, x.data(), y.data(), n));
    }
  }
}

TEST_CASE("rows are visited once each and in order, short ones several at once") {
  for (Index const count : {0, 1, 3, 4, 5, 11})
    for (auto const row_bytes : {std::size_t{4}, std::size_t{1024}, std::size_t{1025}}) {
      Index next = 2;
      std::size_t most = 0;
      kernel::detail::for_rows_at_once(Vectors<64>{}, next, next + count, row_bytes, [&](Index row, auto together) {
        CHECK(row == next);
        next += static_cast<Index>(together());
        most = std::max(most, together());
      });
      CHECK(next == 2 + count);
      CHECK(most == (row_bytes <= 1024 && count >= 4 ? 4u : count > 0 ? 1u : 0u));
    }
}
