// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "gemm_cases.hpp"

using namespace gemm_cases;
using lockstep::HostSpace;
using lockstep::ThreadPool;
using lockstep::kernel::Gemm;
using lockstep::memory::Stream;
using lockstep_test::view;
namespace detail = lockstep::kernel::detail;

namespace {

template <class T>
std::vector<T> product(Case<T> const& x) {
  auto c = x.c;
  ThreadPool pool(1);
  detail::multiply_blas(Gemm<HostSpace>::described<T>(Stream<HostSpace>(pool), x.alpha, x.a_view(), x.a_transpose,
                                                      x.b_view(), x.b_transpose, x.beta,
                                                      view(c, x.shape.m, x.shape.n)));
  return c;
}

}  // namespace

TEST_CASE_TEMPLATE("the linked BLAS computes equal products", T, float, double) {
  for (auto shape : shapes)
    for (auto const& x : kinds<T>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      CHECK(x.worst_error(product(x)) <= 1);
    }
}

namespace {

/// Returns how many of `rounds` products of each shape, by four concurrent callers, differ from a single caller's.
template <class T>
std::vector<int> wrong_products(std::vector<Shape> const& shapes_tried, int rounds) {
  std::vector<Case<T>> cases;
  for (auto shape : shapes_tried) cases.push_back({.shape = shape, .b_transpose = Transpose::yes});
  std::vector<std::vector<T>> alone;
  for (auto const& x : cases) alone.push_back(product(x));
  constexpr int callers = 4;
  std::vector<int> wrong(callers, -1);
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller)
      threads.emplace_back([&, caller] {
        int differing = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(rounds) * cases.size(); ++i) {
          auto const which = (i + static_cast<std::size_t>(caller)) % cases.size();
          auto const c = product(cases[which]);
          differing += std::memcmp(c.data(), alone[which].data(), c.size() * sizeof(T)) != 0;
        }
        wrong[static_cast<std::size_t>(caller)] = differing;
      });
  }
  return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("concurrent callers get a single caller's bits", T, float, double) {
  for (int wrong : wrong_products<T>({{256, 128, 128}, {32, 4, 128}, {256, 256, 512}, {130, 64, 513}}, 30))
    CHECK(wrong == 0);
}

// Small products are so short that callers collide in the library's bookkeeping: without our lock some are wrong.
TEST_CASE("concurrent callers do not enter the library at once") {
  for (int wrong : wrong_products<float>({{33, 33, 16}}, 50'000)) CHECK(wrong == 0);
}
