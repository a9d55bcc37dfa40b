// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/gated_linear.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("a gated linear map on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::GatedLinear<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 40})
    for (Index outputs : {1, 33})
      for (bool with_slope : {false, true}) {
        Index const inputs = 7, n = rows * outputs;
        auto const x = values<T>(rows * inputs, 1), weight = values<T>(outputs * inputs, 2),
                   bias = values<T>(outputs, 3), dy = values<T>(n, 4);
        auto gate = values<T>(n, 5), slope = values<T>(n, 6);
        std::vector<T> y(gate.size());
        OnDevice<T> const device_x(x), device_weight(weight), device_bias(bias), device_dy(dy), device_gate(gate),
            device_slope(slope), device_y(y);
        kernel::GatedLinear<HostSpace>::forward<T>(
            host, view(x, rows, inputs), view(weight, outputs, inputs), view(bias, outputs), view(gate, rows, outputs),
            with_slope ? view(slope, rows, outputs) : TensorView<T, 2, HostSpace>{}, view(y, rows, outputs));
        kernel::GatedLinear<CudaSpace>::forward<T>(
            stream.view(), device_x.view(rows, inputs), device_weight.view(outputs, inputs), device_bias.view(outputs),
            device_gate.view(rows, outputs),
            with_slope ? device_slope.view(rows, outputs) : TensorView<T, 2, CudaSpace>{},
            device_y.view(rows, outputs));
        // A sum of 8 terms up to 1, rounded as often on either side, times numbers up to 1.
        double const bound = 8 * 8 * static_cast<double>(std::numeric_limits<T>::epsilon());
        auto const near = [&](std::vector<T> const& a, std::vector<T> const& b) {
          for (std::size_t i = 0; i < a.size(); ++i)
            if (!(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= bound)) return false;
          return a.size() == b.size();
        };
        CHECK(near(device_y.values(), y));
        CHECK(near(device_slope.values(), slope));
        kernel::GatedLinear<HostSpace>::backward<T>(host, view(dy, n), view(gate, n), view(slope, n));
        kernel::GatedLinear<CudaSpace>::backward<T>(stream.view(), device_dy.view(n), device_gate.view(n),
                                                    device_slope.view(n));
        CHECK(device_gate.values() == gate);
        CHECK(near(device_slope.values(), slope));
      }
}
