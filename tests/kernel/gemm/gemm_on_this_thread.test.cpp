// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gemm/gemm_on_this_thread.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "gemm_cases.hpp"

using namespace gemm_cases;
namespace detail = lockstep::kernel::detail;

TEST_CASE_TEMPLATE("a product on one thread equals its definition and reports every part once", T, float, double) {
  for (auto shape : shapes) {
    Case<T> const x{shape};
    auto c = x.c;
    std::vector<int> reported(c.size());
    auto const done = [&](Index row, Index rows, Index column, Index columns) {
      for (Index i = row; i < row + rows; ++i)
        for (Index j = column; j < column + columns; ++j) ++reported[static_cast<std::size_t>(i * shape.n + j)];
    };
    detail::multiply_on_this_thread(detail::GemmBlock<T>{.m = shape.m,
                                                         .n = shape.n,
                                                         .k = shape.k,
                                                         .alpha = x.alpha,
                                                         .a = {x.a.data(), shape.k, 1},
                                                         .b = {x.b.data(), shape.n, 1},
                                                         .beta = x.beta,
                                                         .c = c.data(),
                                                         .c_row = shape.n,
                                                         .bias = nullptr},
                                    done);
    CAPTURE(shape.m);
    CAPTURE(shape.n);
    CAPTURE(shape.k);
    CHECK(x.worst_error(c) <= 1);
    CHECK(reported == std::vector<int>(c.size(), 1));
  }
}
