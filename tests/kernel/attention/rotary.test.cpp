// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/rotary.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/attention_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using lockstep_test::attention::Side;
using Kernel = kernel::Rotary<HostSpace>;

TEST_CASE_TEMPLATE("each head's channels are rotated by the token's position, and back", T, float, double) {
  Index const heads = 3, width = 10, all = heads * width, first = 7;
  double const base = 500;
  for (bool ragged : {false, true}) {
    Side const side(6, 9, 0, ragged);
    auto const layout = side.layout();
    std::vector<T> table(static_cast<std::size_t>(layout.length * width)), once;
    auto const x = values<T>(layout.slots * all, 1);
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      Kernel::fill<T>(stream, base, first, view(table, layout.length, width));
      auto y = x;
      auto const run = [&](kernel::Rotation rotation) {
        Kernel::run<T>(stream, layout, view(std::as_const(table), layout.length, width), rotation,
                       view(y, layout.slots, all));
      };
      run(kernel::Rotation::forward);
      if (threads == 1) once = y;
      CHECK(y == once);
      double off = 0;
      for (Index slot = 0; slot < layout.slots; ++slot)
        for (Index i = 0; i < all / 2; ++i) {
          auto const head = i / (width / 2), j = i % (width / 2), position = slot - layout.start(layout.row_of(slot));
          auto const angle =
              static_cast<double>(first + position) * std::pow(base, -static_cast<double>(2 * j) / width);
          auto const left = static_cast<std::size_t>(slot * all + head * width + j), right = left + width / 2;
          double const a = x[left], b = x[right];
          off = lockstep_test::larger_error(off, std::abs(y[left] - (a * std::cos(angle) - b * std::sin(angle))));
          off = lockstep_test::larger_error(off, std::abs(y[right] - (b * std::cos(angle) + a * std::sin(angle))));
        }
      CHECK(off <= 4 * static_cast<double>(std::numeric_limits<T>::epsilon()));
      run(kernel::Rotation::inverse);
      off = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        off = lockstep_test::larger_error(off, std::abs(static_cast<double>(y[i] - x[i])));
      CHECK(off <= 8 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    }
  }
}
