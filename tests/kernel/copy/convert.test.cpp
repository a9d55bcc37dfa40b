// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/convert.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;

TEST_CASE_TEMPLATE("elements keep their values in another type", T, float, double) {
  for (Index n : {0, 1, 33, 20'000}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<T> to(bytes.size(), T{-1});
      kernel::Convert<HostSpace>::run<T, std::uint8_t>(memory::Stream<HostSpace>(pool), view(bytes, n), view(to, n));
      CHECK(std::equal(to.begin(), to.end(), bytes.begin(), bytes.end()));
    }
  }
}

TEST_CASE_TEMPLATE("16-bit values are rounded to nearest, also in adding writes, and widened exactly", T, bfloat16,
                   float16) {
  float const half_a_unit = std::is_same_v<T, float16> ? 0x1p-11f : 0x1p-8f;
  for (Index n : {0, 1, 31, 32, 33, 8192, 8193}) {
    CAPTURE(n);
    std::vector<float> x(static_cast<std::size_t>(n)), again(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(1 + static_cast<float>(i % 509) / 509, int(i % 29) - 14);
    std::vector<T> to(x.size(), T(7.0f)), before;
    ThreadPool pool(3);
    memory::Stream<HostSpace> const stream(pool);
    kernel::Convert<HostSpace>::run<T, float>(stream, view(x, n), view(to, n), Write::overwrite);
    before = to;
    kernel::Convert<HostSpace>::run<float, T>(stream, view(to, n), view(again, n));
    kernel::Convert<HostSpace>::run<T, float>(stream, view(x, n), view(to, n), Write::add);
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      right = right && std::abs(static_cast<float>(before[i]) - x[i]) <= x[i] * half_a_unit;
      right = right && again[i] == static_cast<float>(before[i]);
      right = right && to[i].bits == T(static_cast<float>(before[i]) + x[i]).bits;
    }
    CHECK(right);
  }
}

TEST_CASE("every float16, every number between two of them, and out-of-range numbers convert as the type itself") {
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<float16> halves;
  std::vector<float> numbers{std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::min(),
                             65519.0f,
                             65520.0f};
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    bool const signals = (bits & 0x7c00) == 0x7c00 && (bits & 0x200) == 0 && (bits & 0x1ff) != 0;
    if (signals) continue;  // a NaN that instructions make quiet
    float16 half, next;
    half.bits = static_cast<std::uint16_t>(bits), next.bits = static_cast<std::uint16_t>(bits + 1);
    halves.push_back(half);
    float const x = half, middle = x + (static_cast<float>(next) - x) / 2;
    if (std::isfinite(middle))
      numbers.insert(numbers.end(), {middle, std::nextafter(middle, x), std::nextafter(middle, -x)});
  }
  auto const n = std::ssize(numbers), all = std::ssize(halves);
  std::vector<float> wide(halves.size());
  std::vector<float16> rounded(numbers.size());
  kernel::Convert<HostSpace>::run<float, float16>(stream, view(halves, all), view(wide, all));
  kernel::Convert<HostSpace>::run<float16, float>(stream, view(numbers, n), view(rounded, n));
  int wrong = 0;
  for (std::size_t i = 0; i < halves.size(); ++i)
    wrong += std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(static_cast<float>(halves[i]));
  for (std::size_t i = 0; i < numbers.size(); ++i) wrong += rounded[i].bits != float16(numbers[i]).bits;
  CHECK(wrong == 0);
  CHECK(all == 65536 - 2 * 511);
  CHECK(n > 100'000);
}

TEST_CASE("a factor is applied before the rounding, also if the product is added") {
  for (Index n : {0, 1, 33, 8193}) {
    CAPTURE(n);
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0x1p-26f * static_cast<float>(i % 100 + 1);  // too small alone
    std::vector<float16> to(x.size(), float16(7.0f));
    ThreadPool pool(3);
    memory::Stream<HostSpace> const stream(pool);
    float const factor = 0x1p20f;
    auto const run = [&](Write write) {
      kernel::Convert<HostSpace>::run_scaled<float16, float>(stream, view(x, n), &factor, view(to, n), write);
    };
    run(Write::overwrite);
    auto const once = to;
    run(Write::add);
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i)
      right = right && once[i].bits == float16(factor * x[i]).bits &&
              to[i].bits == float16(static_cast<float>(once[i]) + factor * x[i]).bits;
    CHECK(right);
  }
}
