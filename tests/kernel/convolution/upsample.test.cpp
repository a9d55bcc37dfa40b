// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/upsample.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("positions become blocks, whose gradients are summed", T, float, double) {
  using Kernel = kernel::Upsample<HostSpace>;
  for (kernel::UpsampleShape const& s : {kernel::UpsampleShape{.rows = 0, .channels = 3, .extent = {1, 2, 2}},
                                         {.rows = 2, .channels = 1, .extent = {1, 1, 5}, .factor = {1, 1, 3}},
                                         {.rows = 3, .channels = 17, .extent = {2, 3, 4}, .factor = {3, 1, 2}}}) {
    auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
    auto const x = values<T>(in, 1), dy = values<T>(out, 2), start = values<T>(in, 3);
    std::vector<T> expected(static_cast<std::size_t>(out)), sums(static_cast<std::size_t>(in));
    auto const to = s.result();
    std::size_t i = 0;
    for (Index row = 0; row < s.rows; ++row)
      for (Index d = 0; d < to[0]; ++d)
        for (Index h = 0; h < to[1]; ++h)
          for (Index w = 0; w < to[2]; ++w)
            for (Index c = 0; c < s.channels; ++c, ++i) {
              auto const from = ((row * s.extent[0] + d / s.factor[0]) * s.extent[1] + h / s.factor[1]) * s.extent[2] +
                                w / s.factor[2];
              auto const at = static_cast<std::size_t>(from * s.channels + c);
              expected[i] = x[at];
              sums[at] += dy[i];
            }
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      std::vector<T> y(expected.size());
      auto dx = start, added = start;
      Kernel::forward<T>(stream, s, view(x, in), view(y, out));
      Kernel::backward<T>(stream, s, view(dy, out), view(dx, in), Write::overwrite);
      Kernel::backward<T>(stream, s, view(dy, out), view(added, in), Write::add);
      CHECK(y == expected);
      CHECK(dx == sums);
      for (std::size_t k = 0; k < dx.size(); ++k) CHECK(added[k] == doctest::Approx(start[k] + sums[k]));
    }
  }
}
