// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "larger_error.hpp"

/// Cases of Softmax and LogSoftmax.
namespace softmax_cases {
using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;

/// Checks y and dx on the host. For `share`, the exact softmax of an element, the oracle has the exact y, the term of
/// the row's sum, and the gradient, with the size of y and of dx that their rounding errors are relative to.
template <class Kernel, class Scalar, class Oracle>
void check(Oracle const& oracle) {
  double const unit = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  for (Index rows : {0, 1, 65})
    for (Index width : {1, 7, 33, 200})
      for (Scalar offset : {Scalar(0), Scalar(80), Scalar(-3000)}) {
        auto x = values<Scalar>(rows * width, 1, 3);
        for (auto& each : x) each += offset;
        auto const dy = values<Scalar>(rows * width, 2);
        for (int threads : {1, 3}) {
          ThreadPool pool(threads);
          memory::Stream<HostSpace> const stream(pool);
          auto y = x, dx = dy, added = values<Scalar>(rows * width, 3);
          auto const before = added;
          Kernel::template forward<Scalar>(stream, view(x, rows, width), view(y, rows, width));
          for (auto const& [to, write] : {std::pair(&dx, Write::overwrite), std::pair(&added, Write::add)})
            Kernel::template backward<Scalar>(stream, view(dy, rows, width), view(std::as_const(y), rows, width),
                                              view(*to, rows, width), write);
          double off = 0;
          for (Index row = 0; row < rows; ++row) {
            auto const at = [&](auto const& matrix, Index c) {
              return static_cast<double>(matrix[static_cast<std::size_t>(row * width + c)]);
            };
            auto const exponential = [&](Index c) { return std::exp(at(x, c) - static_cast<double>(offset)); };
            double total = 0, sum = 0, dy_size = 0;
            for (Index c = 0; c < width; ++c) total += exponential(c);
            for (Index c = 0; c < width; ++c) {
              sum += oracle.term(exponential(c) / total, at(dy, c));
              dy_size += std::abs(at(dy, c));
            }
            for (Index c = 0; c < width; ++c) {
              auto const share = exponential(c) / total, slope = oracle.slope(share, at(dy, c), sum);
              auto const size = oracle.dx_size(dy_size);
              for (double const error :
                   {std::abs(at(y, c) - oracle.y(share)) / oracle.y_size(share), std::abs(at(dx, c) - slope) / size,
                    std::abs(at(added, c) - at(before, c) - slope) / (size + 1)})
                off = lockstep_test::larger_error(off, error);
            }
          }
          CHECK(off <= 40 * unit);  // sums of 200 numbers, the exponential, and a division or logarithm, each rounded
        }
      }
}

}  // namespace softmax_cases
