// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/channels.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("columns are copied into a wider matrix and out of it", T, float, double) {
  using Kernel = kernel::Channels<HostSpace>;
  Index const all = 40;
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    memory::Stream<HostSpace> const stream(pool);
    for (Index rows : {0, 1, 31, 64, 65, 200})
      for (Index width : {0, 1, 7, 33})
        for (Index first : {Index{0}, Index{3}, all - width}) {
          auto const x = values<T>(rows * width, 1), before = values<T>(rows * all, 2);
          auto y = before, taken = x, added = x, gradient = before, gradient_added = before;
          Kernel::put<T>(stream, view(x, rows, width), first, view(y, rows, all));
          Kernel::take<T>(stream, view(before, rows, all), first, view(taken, rows, width), Write::overwrite);
          Kernel::take<T>(stream, view(before, rows, all), first, view(added, rows, width), Write::add);
          Kernel::take_backward<T>(stream, view(x, rows, width), first, view(gradient, rows, all), Write::overwrite);
          Kernel::take_backward<T>(stream, view(x, rows, width), first, view(gradient_added, rows, all), Write::add);
          Index wrong = 0;
          for (Index i = 0; i < rows * all; ++i) {
            auto const at = static_cast<std::size_t>(i);
            auto const c = i % all - first;
            if (c < 0 || c >= width) {
              wrong += y[at] != before[at];
              wrong += gradient[at] != 0;
              wrong += gradient_added[at] != before[at];
              continue;
            }
            auto const from = static_cast<std::size_t>(i / all * width + c);
            wrong += y[at] != x[from];
            wrong += gradient[at] != x[from];
            wrong += gradient_added[at] != before[at] + x[from];
            wrong += taken[from] != before[at];
            wrong += added[from] != x[from] + before[at];
          }
          CHECK(wrong == 0);
        }
  }
}
