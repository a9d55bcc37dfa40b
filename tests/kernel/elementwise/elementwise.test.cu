// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/elementwise.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "larger_error.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

namespace {

/// Returns the largest difference of the two.
template <class T>
double farthest(std::vector<T> const& a, std::vector<T> const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = lockstep_test::larger_error(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

/// Forward on both agrees within `roundings` of numbers up to 6. Backward, from the host's saved values, has equal
/// bits.
template <class T, class Rule>
void check_activation(Rule rule, double roundings) {
  using Host = kernel::Elementwise<HostSpace>;
  using Device = kernel::Elementwise<CudaSpace>;
  double const bound = roundings * 6 * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  ThreadPool pool;
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257, 5000}) {
    auto const x = values<T>(n, 1, 6), dy = values<T>(n, 2);
    auto y = x, slope = x, dx = values<T>(n, 3);
    OnDevice<T> const device_x(x), device_dy(dy), device_y(y), device_slope(x), device_dx(dx);
    Device::template forward<Rule, T>(stream.view(), device_x.view(n), device_y.view(n), rule);
    Host::forward<Rule, T>(host, view(x, n), view(y, n), rule);
    CHECK(farthest(device_y.values(), y) <= bound);
    constexpr bool has_slope = requires { rule.at(T{}); };
    if constexpr (has_slope) {
      OnDevice<T> const again(y);
      Device::template forward<Rule, T>(stream.view(), device_x.view(n), again.view(n), device_slope.view(n), rule);
      Host::forward<Rule, T>(host, view(x, n), view(y, n), view(slope, n), rule);
      CHECK(again.values() == device_y.values());
      CHECK(farthest(device_slope.values(), slope) <= bound);
    }
    auto const& kept = has_slope ? slope : y;
    OnDevice<T> const device_kept(kept);
    for (auto write : {Write::add, Write::overwrite}) {
      Device::template backward<Rule, T>(stream.view(), device_dy.view(n), device_kept.view(n), device_dx.view(n),
                                         write, rule);
      Host::backward<Rule, T>(host, view(dy, n), view(kept, n), view(dx, n), write, rule);
      CHECK(device_dx.values() == dx);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("activations on CUDA equal the host's within rounding, and their backward has equal bits", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::Elementwise<CudaSpace>")) return;
  check_activation<T>(kernel::Relu{}, 0);
  check_activation<T>(kernel::LeakyRelu{0.2}, 0);
  check_activation<T>(kernel::Scale{-3}, 0);
  // Values within 9 roundings on either, which the device fuses with others; slopes within 20.
  check_activation<T>(kernel::Sigmoid{}, 18);
  check_activation<T>(kernel::Tanh{}, 18);
  check_activation<T>(kernel::Exp{}, 1300);  // values up to e^6, while others are at most 6
  check_activation<T>(kernel::Silu{}, 40);
  // The host's integral is within 6 units of 2^-24 and the device's erfcf within 5 of its own half, the density within
  // 10. x is a factor of at most 6 if either is not 0 or 1, and every product rounds once: 13 + 12 * 6 of 1.
  check_activation<T>(kernel::Gelu{}, 15);
  check_activation<T>(kernel::Relu6{}, 0);
  check_activation<T>(kernel::Hardsigmoid{}, 2);
  check_activation<T>(kernel::Hardswish{}, 8);  // a product of numbers up to 6, divided, and rounded three times
  check_activation<T>(kernel::Elu{0.5}, 40);
  // As silu's, with arguments of the logistic function that have an error of 4 roundings and count by at most 1/4.
  check_activation<T>(kernel::GeluTanh{}, 60);
  check_activation<T>(kernel::Mish{}, 60);
  check_activation<T>(kernel::Softplus{2}, 40);
}
