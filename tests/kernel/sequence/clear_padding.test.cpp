// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/clear_padding.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/attention_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using lockstep_test::attention::Side;
using Kernel = kernel::ClearPadding<HostSpace>;

TEST_CASE_TEMPLATE("tokens stay, and padding is cleared, or left unchanged by adding writes", T, float, double) {
  for (bool ragged : {false, true})
    for (Index width : {1, 33}) {
      Side const side(6, 9, 0, ragged);
      auto const layout = side.layout();
      auto const x = values<T>(layout.slots * width, 1), before = values<T>(layout.slots * width, 2);
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        auto y = before, added = before;
        Kernel::run<T>(stream, layout, view(x, layout.slots, width), view(y, layout.slots, width), Write::overwrite);
        Kernel::run<T>(stream, layout, view(x, layout.slots, width), view(added, layout.slots, width), Write::add);
        for (std::size_t i = 0; i < x.size(); ++i) {
          bool const token = layout.is_token(static_cast<Index>(i) / width);
          CHECK(y[i] == (token ? x[i] : T{0}));
          CHECK(added[i] == (token ? before[i] + x[i] : before[i]));
        }
      }
    }
}

TEST_CASE("a window has as many positions as fit") {
  CHECK(Kernel::window_count(10, 3, 1, 2, 100) == 10);
  CHECK(Kernel::window_count(10, 5, 2, 4, 100) == 5);
  CHECK(Kernel::window_count(1, 5, 2, 4, 100) == 1);
  CHECK(Kernel::window_count(2, 4, 1, 0, 100) == 0);
  CHECK(Kernel::window_count(0, 1, 1, 6, 100) == 0);
  CHECK(Kernel::window_count(10, 1, 1, 0, 4) == 4);
}
