// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/softmax.hpp>

#include <doctest/doctest.h>

#include "kernel/normalization/softmax_cases.hpp"

using namespace lockstep;

namespace {
struct Oracle {
  double y(double share) const { return share; }
  double y_size(double) const { return 1; }
  double term(double share, double dy) const { return share * dy; }
  double slope(double share, double dy, double sum) const { return share * (dy - sum); }
  double dx_size(double) const { return 2; }
};
}  // namespace

TEST_CASE_TEMPLATE("shares of exponentials are exact for numbers of any size", T, float, double) {
  softmax_cases::check<kernel::Softmax<HostSpace>, T>(Oracle{});
}
