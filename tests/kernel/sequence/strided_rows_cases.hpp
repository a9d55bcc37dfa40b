// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <cstddef>

#include <lockstep/kernel/write.hpp>

#include "kernel/values.hpp"

/// Cases that every backend's rows must satisfy. A backend has
///   std::vector<T> forward(std::vector<T> x, Index rows, Index width, Index stride, Index first);
///   std::vector<T> backward(std::vector<T> dy, rows, width, stride, first, std::vector<T> dx, Write);
namespace lockstep_test {

template <class T, class Backend>
void strided_rows_cases(Backend& backend) {
  using lockstep::Index;
  for (Index rows : {0, 1, 63, 64, 65})
    for (Index width : {1, 33})
      for (Index stride : {1, 3})
        for (Index first = 0; first < stride; ++first) {
          auto const x = values<T>(rows * stride * width, 1), dy = values<T>(rows * width, 2);
          auto const y = backend.forward(x, rows, width, stride, first);
          auto const fresh = backend.backward(dy, rows, width, stride, first, x, lockstep::Write::overwrite),
                     added = backend.backward(dy, rows, width, stride, first, x, lockstep::Write::add);
          bool good = y.size() == dy.size();
          for (Index row = 0; row < rows * stride; ++row)
            for (Index c = 0; c < width; ++c) {
              auto const at = static_cast<std::size_t>(row * width + c);
              auto const in = static_cast<std::size_t>(row / stride * width + c);
              bool const picked = row % stride == first;
              T const expected = picked ? dy[in] : T{0};
              if (picked) good = good && y[in] == x[at];
              good = good && fresh[at] == expected && added[at] == x[at] + expected;
            }
          CHECK(good);
        }
}

}  // namespace lockstep_test
