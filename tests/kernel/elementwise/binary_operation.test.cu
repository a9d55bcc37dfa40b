// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/binary_operation.cuh>

#include <doctest/doctest.h>

#include <lockstep/core/float16.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

namespace binary_operation_on_cuda {
namespace {

template <class T, class Towards>
void check_backward(Index n, Towards) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const dz = values<T>(n, 1), y = values<T>(n, 2);
  auto dx = values<T>(n, 3);
  OnDevice<T> const device_dz(dz), device_y(y), device_dx(dx);
  for (auto write : {Write::add, Write::overwrite}) {
    kernel::BinaryOperation<CudaSpace>::backward<Towards, T>(stream.view(), device_dz.view(n),
                                                             Towards::reads_second
                                                                 ? TensorView<T const, 1, CudaSpace>(device_y.view(n))
                                                                 : TensorView<T const, 1, CudaSpace>{},
                                                             device_dx.view(n), write);
    kernel::BinaryOperation<HostSpace>::backward<Towards, T>(host, view(dz, n), view(y, n), view(dx, n), write);
    CHECK(device_dx.values() == dx);
  }
}

template <class T, class Rule>
void check_rule(Rule) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index n : {0, 1, 31, 255, 256, 257, 20'000}) {
    auto const x = values<T>(n, 1), y = values<T>(n, 2);
    auto z = values<T>(n, 3);
    OnDevice<T> const device_x(x), device_y(y), device_z(z);
    kernel::BinaryOperation<CudaSpace>::forward<Rule, T>(stream.view(), device_x.view(n), device_y.view(n),
                                                         device_z.view(n));
    kernel::BinaryOperation<HostSpace>::forward<Rule, T>(host, view(x, n), view(y, n), view(z, n));
    CHECK(device_z.values() == z);
    kernel::BinaryOperation<CudaSpace>::forward<Rule, T>(stream.view(), device_x.view(n), device_y.view(n),
                                                         device_x.view(n));  // in place
    CHECK(device_x.values() == z);
    check_backward<T>(n, typename Rule::GradientX{});
    check_backward<T>(n, typename Rule::GradientY{});
  }
}

/// In 16 bits: the operation in float, rounded once.
template <class T, class Rule>
void check_rounded(Rule rule) {
  Index const n = 300;
  memory::CudaStream const stream;
  std::vector<T> x, y, z;
  for (float v : values<float>(n, 1)) x.push_back(static_cast<T>(v));
  for (float v : values<float>(n, 2)) y.push_back(static_cast<T>(v));
  z = x;
  OnDevice<T> const device_x(x), device_y(y), device_z(z);
  kernel::BinaryOperation<CudaSpace>::forward<Rule, T>(stream.view(), device_x.view(n), device_y.view(n),
                                                       device_z.view(n));
  kernel::BinaryOperation<CudaSpace>::backward<Rule, T>(stream.view(), device_x.view(n), device_y.view(n),
                                                        device_x.view(n), Write::add);
  auto const made = device_z.values(), sum = device_x.values();
  Index wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float const a = x[i], here = rule(a, static_cast<float>(y[i]));
    wrong += static_cast<float>(made[i]) != static_cast<float>(static_cast<T>(here));
    wrong += static_cast<float>(sum[i]) != static_cast<float>(static_cast<T>(a + here));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("sums, differences and products on CUDA have the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::BinaryOperation<CudaSpace>")) return;
  check_rule<T>(kernel::Plus{});
  check_rule<T>(kernel::Minus{});
  check_rule<T>(kernel::Times{});
}

TEST_CASE("16-bit operands are combined in float and rounded once") {
  if (!lockstep_test::has_gpu("kernel::BinaryOperation<CudaSpace>")) return;
  check_rounded<bfloat16>(kernel::Times{});
  check_rounded<bfloat16>(kernel::FirstOperand{});
  check_rounded<float16>(kernel::Times{});
  check_rounded<float16>(kernel::NegatedOperand{});
}

}  // namespace binary_operation_on_cuda
