// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/detail/long_product.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "kernel/values.hpp"
#include "larger_error.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::detail::LongProduct;
using lockstep_test::OnDevice;
using lockstep_test::values;

TEST_CASE_TEMPLATE("long products are sums of products, overwritten or added", T, float, double, bfloat16, float16) {
  if (!lockstep_test::has_gpu("multiply_long")) return;
  using Sum = Accumulate<T>;
  memory::CudaStream const stream;
  for (auto const& product : {LongProduct(1, 1, 65), LongProduct(32, 64, 128), LongProduct(33, 65, 129),
                              LongProduct(5, 70, 200), LongProduct(31, 63, 1000).first(700)}) {
    auto const m = product.m, n = product.n, k = product.k;
    CAPTURE(m);
    CAPTURE(k);
    auto const a = values<T>(k * m, 1), b = values<T>(k * n, 2);
    auto const before = values<Sum>(m * n, 3);
    OnDevice<T> const device_a(a), device_b(b);
    OnDevice<Sum> const c(before), partial(std::vector<Sum>(static_cast<std::size_t>(product.partial_elements())));
    for (auto write : {Write::overwrite, Write::add}) {
      kernel::detail::multiply_long<T>("test", stream.view(), product, device_a.view(1).data, device_b.view(1).data,
                                       c.view(1).data, write, partial.view(1).data);
      auto const got = c.values();
      double worst = 0;  // in units of the sum of the terms' absolute values
      for (Index i = 0; i < m * n; ++i) {
        double sum = 0, terms = 0;
        for (Index row = 0; row < k; ++row) {
          auto const at = [](auto const& from, Index where) {
            return static_cast<double>(static_cast<Sum>(from[static_cast<std::size_t>(where)]));
          };
          double const term = at(a, row * m + i / n) * at(b, row * n + i % n);
          sum += term, terms += std::abs(term);
        }
        if (write == Write::add) sum *= 2, terms *= 2;  // the overwritten sum is already in memory
        worst = lockstep_test::larger_error(
            worst, std::abs(static_cast<double>(got[static_cast<std::size_t>(i)]) - sum) / terms);
      }
      CHECK(worst <= static_cast<double>(k + 3) * static_cast<double>(std::numeric_limits<Sum>::epsilon()));
    }
  }
}

TEST_CASE("a part of a long product needs no more memory, and short products and large results are not long products") {
  LongProduct const whole(16, 27, 33'000);
  CHECK(whole.is_long<float>());
  CHECK(whole.chunks() >= 500);
  for (Index rows = 0; rows <= whole.k; rows += 61) {
    CHECK(whole.first(rows).partial_elements() <= whole.partial_elements());
    if (whole.first(rows).is_long<float>()) CHECK(whole.first(rows).chunks() > 1);
  }
  CHECK_FALSE(LongProduct(16, 27, 511).is_long<float>());
  CHECK_FALSE(LongProduct(512, 1024, 100'000).is_long<float>());
  CHECK(LongProduct(128, 320, 2048).is_long<float>());
  CHECK_FALSE(LongProduct(128, 320, 2048).is_long<bfloat16>());
  CHECK(LongProduct(64, 45, 4096).is_long<bfloat16>());
}
