// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/log_softmax.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/normalization/softmax_cases.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;
using Kernel = kernel::LogSoftmax<HostSpace>;

namespace {
struct Oracle {
  double y(double share) const { return std::log(share); }
  double y_size(double share) const { return 4 + std::abs(std::log(share)); }
  double term(double, double dy) const { return dy; }
  double slope(double share, double dy, double sum) const { return dy - share * sum; }
  double dx_size(double dy_size) const { return 2 + dy_size; }
};
}  // namespace

TEST_CASE_TEMPLATE("log probabilities are exact for numbers of any size", T, float, double) {
  softmax_cases::check<Kernel, T>(Oracle{});
}

TEST_CASE_TEMPLATE("log probabilities are finite where probabilities underflow", T, float, double) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<T> const x{T(-2000), T(0)}, dy{T(1), T(0)};
  std::vector<T> y(2), dx(2);
  Kernel::forward<T>(stream, view(x, 1, 2), view(y, 1, 2));
  CHECK(y == std::vector<T>{T(-2000), T(0)});
  Kernel::backward<T>(stream, view(dy, 1, 2), view(std::as_const(y), 1, 2), view(dx, 1, 2), Write::overwrite);
  CHECK(dx == std::vector<T>{T(1), T(-1)});
}

TEST_CASE_TEMPLATE("a logit of minus infinity has probability zero and no effect on the others", T, float, double) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<T> const x{T(3), -std::numeric_limits<T>::infinity()}, dy{T(1), T(0)};
  std::vector<T> y(2), dx(2);
  Kernel::forward<T>(stream, view(x, 1, 2), view(y, 1, 2));
  CHECK(y == std::vector<T>{T(0), -std::numeric_limits<T>::infinity()});
  Kernel::backward<T>(stream, view(dy, 1, 2), view(std::as_const(y), 1, 2), view(dx, 1, 2), Write::overwrite);
  CHECK(dx == std::vector<T>{T(0), T(0)});
}
