// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "gemm_cases.hpp"

using namespace gemm_cases;
using lockstep::HostSpace;
using lockstep::kernel::Gemm;
using lockstep_test::view;
namespace detail = lockstep::kernel::detail;

namespace {

template <class T>
std::vector<T> product(Case<T> const& x) {
  auto c = x.c;
  detail::multiply_blas(Gemm<HostSpace>::described<T>(x.alpha, x.a_view(), x.a_transpose, x.b_view(), x.b_transpose,
                                                      x.beta, view(c, x.shape.m, x.shape.n)));
  return c;
}

}  // namespace

TEST_CASE_TEMPLATE("the linked BLAS computes the same products", T, float, double) {
  for (auto shape : shapes)
    for (auto const& x : kinds<T>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      CHECK(x.worst_error(product(x)) <= 1);
    }
}

TEST_CASE_TEMPLATE("callers on several threads get the bits that one gets alone", T, float, double) {
  std::vector<Case<T>> cases;
  for (auto shape : {Shape{256, 128, 128}, Shape{32, 4, 128}, Shape{256, 256, 512}, Shape{130, 64, 513}})
    cases.push_back({.shape = shape, .b_transpose = Transpose::yes});
  std::vector<std::vector<T>> alone;
  for (auto const& x : cases) alone.push_back(product(x));
  constexpr int callers = 4, rounds = 30;
  std::vector<int> wrong(callers, -1);
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller)
      threads.emplace_back([&, caller] {
        int differing = 0;
        for (std::size_t i = 0; i < rounds * cases.size(); ++i) {
          auto const which = (i + static_cast<std::size_t>(caller)) % cases.size();
          auto const c = product(cases[which]);
          differing += std::memcmp(c.data(), alone[which].data(), c.size() * sizeof(T)) != 0;
        }
        wrong[static_cast<std::size_t>(caller)] = differing;
      });
  }
  for (int differing : wrong) CHECK(differing == 0);
}
