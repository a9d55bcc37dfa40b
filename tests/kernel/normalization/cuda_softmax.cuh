// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/cuda.cuh>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

namespace cuda_softmax {
using namespace lockstep;

/// Compares a kernel on CUDA with the host's. y_terms and dx_terms are bounds of same_sums.
template <template <class> class Kernel, class Scalar>
void check(double y_terms, double dx_terms) {
  using lockstep_test::OnDevice;
  using lockstep_test::same_sums;
  using lockstep_test::values;
  using lockstep_test::view;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 31, 65})
    for (Index width : {1, 33, 200})
      for (auto write : {Write::overwrite, Write::add}) {
        auto const x = values<Scalar>(rows * width, 1, 90), dy = values<Scalar>(rows * width, 2);
        auto y = x, dx = values<Scalar>(rows * width, 3);
        OnDevice<Scalar> const device_x(x), device_dy(dy), device_y(x), device_dx(dx);
        Kernel<HostSpace>::template forward<Scalar>(host, view(x, rows, width), view(y, rows, width));
        Kernel<HostSpace>::template backward<Scalar>(host, view(dy, rows, width), view(std::as_const(y), rows, width),
                                                     view(dx, rows, width), write);
        Kernel<CudaSpace>::template forward<Scalar>(stream.view(), device_x.view(rows, width),
                                                    device_y.view(rows, width));
        Kernel<CudaSpace>::template backward<Scalar>(stream.view(), device_dy.view(rows, width),
                                                     device_y.view(rows, width), device_dx.view(rows, width), write);
        CHECK(same_sums(device_y.values(), y, y_terms));
        CHECK(same_sums(device_dx.values(), dx, dx_terms));
      }
}

}  // namespace cuda_softmax
