// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/elementwise.hpp>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::Write;
using lockstep::memory::Stream;
using lockstep_test::values;
using lockstep_test::view;
namespace kernel = lockstep::kernel;
using Kernel = kernel::Elementwise<HostSpace>;

namespace {

/// A rule with a member, in value and slope: x^2 + by x
struct Parabola {
  [[maybe_unused]] static constexpr char const* name = "Parabola";
  int by;
  template <class T>
  constexpr kernel::ActivationAt<T> operator()(T x) const {
    return {x * x + static_cast<T>(by) * x, 2 * x + static_cast<T>(by)};
  }
};

template <class T, class Rule>
void check_rule(Rule rule) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    Stream<HostSpace> const stream(pool);
    for (Index size : {0, 1, 31, 32, 33, 8191, 8192, 8193}) {
      auto const x = values<T>(size, 1, 3), dy = values<T>(size, 2), before = values<T>(size, 3);
      auto y = x, dx = dy, sum = before, slope = x, value = x;
      Kernel::forward<Rule, T>(stream, view(y, size), view(y, size), rule);
      if constexpr (requires { rule.at(T{}); })
        Kernel::forward<Rule, T>(stream, view(slope, size), view(value, size), view(slope, size), rule);
      auto const& kept = requires { rule.at(T{}); }
      ? slope : y;
      Kernel::backward<Rule, T>(stream, view(dx, size), view(kept, size), view(dx, size), Write::overwrite, rule);
      Kernel::backward<Rule, T>(stream, view(dy, size), view(kept, size), view(sum, size), Write::add, rule);
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        wrong += y[i] != rule(x[i]);
        if constexpr (requires { rule.at(T{}); }) wrong += value[i] != y[i] || slope[i] != rule.at(x[i]).slope;
        auto const here = rule.backward(dy[i], kept[i]);
        wrong += dx[i] != here;
        wrong += sum[i] != before[i] + here;
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("rules and their gradients, element by element, at all sizes and in place", T, float, double) {
  check_rule<T>(kernel::Relu{});
  check_rule<T>(kernel::Sigmoid{});
  check_rule<T>(kernel::Tanh{});
  check_rule<T>(kernel::Silu{});
  check_rule<T>(kernel::Gelu{});
  check_rule<T>(kernel::LeakyRelu{0.2});
  check_rule<T>(kernel::Scale{-3});
  check_rule<T>(kernel::ActivationAdapter<Parabola>{{3}});
}
