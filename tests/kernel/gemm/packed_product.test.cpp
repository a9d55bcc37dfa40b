// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gemm/packed_product.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/values.hpp"

using lockstep::Index;
namespace detail = lockstep::kernel::detail;

TEST_CASE_TEMPLATE("a packed operand gives products of its first rows and columns", T, float, double) {
  Index const depth = 19, count = 37;
  auto const b = lockstep_test::values<T>(depth * count, 2);
  detail::with_packed_product<T>([&](auto product) {
    Index const columns = product.columns(count);
    REQUIRE(columns >= count);
    std::vector<T> packed(static_cast<std::size_t>(depth * columns));
    product.pack({b.data(), count, 1}, depth, count, packed.data());
    for (Index m : {1, 7, 33}) {
      for (Index k : {1, 5, 19}) {
        for (Index n : {1, 16, 37}) {
          auto const a = lockstep_test::values<T>(m * k, 1);
          Index const c_row = product.columns(n);
          auto c = lockstep_test::values<T>(m * c_row, 3);
          auto const before = c;
          product.multiply(m, n, k, T{2}, {a.data(), k, 1}, packed.data(), depth, T{1}, c.data(), c_row);
          double worst = 0;  // in units of (k + 2) * epsilon * the sum of the terms' magnitudes
          for (Index i = 0; i < m; ++i) {
            for (Index j = 0; j < n; ++j) {
              double sum = static_cast<double>(before[static_cast<std::size_t>(i * c_row + j)]);
              double magnitude = std::abs(sum);
              for (Index p = 0; p < k; ++p) {
                auto const term = 2.0 * static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) *
                                  static_cast<double>(b[static_cast<std::size_t>(p * count + j)]);
                sum += term;
                magnitude += std::abs(term);
              }
              auto const bound =
                  static_cast<double>(k + 2) * static_cast<double>(std::numeric_limits<T>::epsilon()) * magnitude;
              auto const error = std::abs(static_cast<double>(c[static_cast<std::size_t>(i * c_row + j)]) - sum);
              worst = std::max(worst, error / bound);
            }
          }
          CHECK(worst <= 1);
        }
      }
    }
  });
}
