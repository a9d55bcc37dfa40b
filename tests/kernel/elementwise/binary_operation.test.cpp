// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/binary_operation.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::BinaryOperation<HostSpace>;

namespace {

/// The operation and its gradients, element by element; `towards_x` and `towards_y` are the expected gradients.
template <class Rule, class T, class X, class Y>
void check_rule(X const& towards_x, Y const& towards_y) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    memory::Stream<HostSpace> const stream(pool);
    for (Index n : {0, 1, 31, 32, 33, 8191, 8193}) {
      auto const x = values<T>(n, 1), y = values<T>(n, 2), dz = values<T>(n, 3), before = values<T>(n, 4);
      auto z = before, in_x = x, in_y = y, dx = before, dy = before, sum_x = before, sum_y = before;
      Kernel::forward<Rule, T>(stream, view(x, n), view(y, n), view(z, n));
      Kernel::forward<Rule, T>(stream, view(in_x, n), view(y, n), view(in_x, n));
      Kernel::forward<Rule, T>(stream, view(x, n), view(in_y, n), view(in_y, n));
      auto const back = [&]<class Towards>(Towards, std::vector<T> const& other, std::vector<T>& to, Write write) {
        auto const second = Towards::reads_second ? view(other, n) : TensorView<T const, 1, HostSpace>{};
        Kernel::backward<Towards, T>(stream, view(dz, n), second, view(to, n), write);
      };
      back(typename Rule::GradientX{}, y, dx, Write::overwrite);
      back(typename Rule::GradientY{}, x, dy, Write::overwrite);
      back(typename Rule::GradientX{}, y, sum_x, Write::add);
      back(typename Rule::GradientY{}, x, sum_y, Write::add);
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        wrong += z[i] != Rule{}(x[i], y[i]);
        T const gx = towards_x(dz[i], y[i]), gy = towards_y(dz[i], x[i]);
        wrong += dx[i] != gx || dy[i] != gy || sum_x[i] != before[i] + gx || sum_y[i] != before[i] + gy;
      }
      CHECK(wrong == 0);
      CHECK(in_x == z);
      CHECK(in_y == z);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("sums, differences, products and their gradients, at all sizes and in place", T, float, double) {
  CHECK(kernel::Plus{}(T{3}, T{5}) == T{8});
  CHECK(kernel::Minus{}(T{3}, T{5}) == T{-2});
  CHECK(kernel::Times{}(T{3}, T{5}) == T{15});
  auto const same = [](T dz, T) { return dz; };
  auto const negated = [](T dz, T) { return -dz; };
  auto const times = [](T dz, T other) { return dz * other; };
  check_rule<kernel::Plus, T>(same, same);
  check_rule<kernel::Minus, T>(same, negated);
  check_rule<kernel::Times, T>(times, times);
}
