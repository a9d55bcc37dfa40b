// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence_scale.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "values.hpp"
#include "view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::SequenceScale<HostSpace>;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class T>
void check(Layout const& layout, Index width, int threads) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  auto const rows = layout.rows, slots = layout.slots;
  auto const x = values<T>(slots * width, 1), factors = values<T>(rows * width, 2),
             before = values<T>(slots * width, 3), other = values<T>(rows * width, 5);
  auto dy = values<T>(slots * width, 4);
  for (Index i = 0; i < slots * width; ++i)  // what stands in padding would poison any sum
    if (!layout.is_token(i / width)) dy[static_cast<std::size_t>(i)] = std::numeric_limits<T>::quiet_NaN();
  auto y = x, sum = before, gradient = other, added = other;
  Kernel::run<T>(stream, layout, view(y, slots, width), view(factors, rows, width), view(y, slots, width),
                 Write::overwrite);
  Kernel::run<T>(stream, layout, view(x, slots, width), view(factors, rows, width), view(sum, slots, width),
                 Write::add);
  Kernel::factors_backward<T>(stream, layout, view(dy, slots, width), view(x, slots, width),
                              view(gradient, rows, width), Write::overwrite);
  Kernel::factors_backward<T>(stream, layout, view(dy, slots, width), view(x, slots, width), view(added, rows, width),
                              Write::add);
  Index wrong = 0;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < width; ++c) {
      auto const f = static_cast<std::size_t>(r * width + c);
      T zeros = 0, others = other[f];
      for (Index s = layout.start(r); s < layout.end(r); ++s) {
        auto const i = static_cast<std::size_t>(s * width + c);
        T const here = x[i] * factors[f];
        wrong += y[i] != here || sum[i] != before[i] + here;
        if (layout.is_token(s)) zeros += dy[i] * x[i], others += dy[i] * x[i];
      }
      wrong += gradient[f] != zeros || added[f] != others;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("tokens times the factors of their sequence, and both gradients, padded and ragged", T, float,
                   double) {
  std::vector<std::int32_t> const lengths{3, 0, 5, 1};
  std::vector<Index> const offsets{0, 3, 3, 8, 9}, positions{1, 2, 3, 4};
  for (int threads : {1, 3})
    for (Index width : {1, 16, 33}) {
      check<T>(Layout::padded(5, view(lengths, 4), view(positions, 4)), width, threads);
      check<T>(Layout::ragged(9, 5, view(offsets, 5), view(positions, 4)), width, threads);
      check<T>(Layout{.rows = 3, .slots = 12, .length = 4}, width, threads);
      check<T>(Layout{}, width, threads);
    }
}
