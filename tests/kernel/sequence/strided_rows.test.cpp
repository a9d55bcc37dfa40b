// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/strided_rows.hpp>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/view.hpp"
#include "strided_rows_cases.hpp"

using namespace lockstep;
using lockstep_test::view;

namespace {
template <class T>
struct HostBackend {
  using Kernel = kernel::StridedRows<HostSpace>;
  ThreadPool pool{2};

  std::vector<T> forward(std::vector<T> const& x, Index rows, Index width, Index stride, Index first) {
    std::vector<T> y(static_cast<std::size_t>(rows * width));
    Kernel::forward<T>(memory::Stream<HostSpace>(pool), view(x, rows * stride, width), stride, first,
                       view(y, rows, width));
    return y;
  }
  std::vector<T> backward(std::vector<T> const& dy, Index rows, Index width, Index stride, Index first,
                          std::vector<T> dx, Write write) {
    Kernel::backward<T>(memory::Stream<HostSpace>(pool), view(dy, rows, width), stride, first,
                        view(dx, rows * stride, width), write);
    return dx;
  }
};
}  // namespace

TEST_CASE_TEMPLATE("every n-th row, and its gradient", T, float, double) {
  HostBackend<T> backend;
  lockstep_test::strided_rows_cases<T>(backend);
}
