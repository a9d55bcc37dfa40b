// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/convert.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <lockstep/core/float16.hpp>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE_TEMPLATE("elements keep their values in another type on CUDA", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Convert<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257, 5000}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    OnDevice<std::uint8_t> const from(bytes);
    OnDevice<T> const to(std::vector<T>(bytes.size()));
    kernel::Convert<CudaSpace>::run<T, std::uint8_t>(stream.view(), from.view(n), to.view(n));
    auto const got = to.values();
    CHECK(std::equal(got.begin(), got.end(), bytes.begin(), bytes.end()));
  }
}

TEST_CASE_TEMPLATE("16-bit values on CUDA are rounded as on the host, also if added or scaled", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::Convert<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257}) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(1 + static_cast<float>(i % 509) / 509, static_cast<int>(i % 29) - 14);
    std::vector<T> const start(x.size(), T(7.0f));
    OnDevice<float> const from(x), again(x);
    OnDevice<T> const rounded(start), sum(start), scaled(start);
    OnDevice<float> const factor({0x1p-3f});
    kernel::Convert<CudaSpace>::run<T, float>(stream.view(), from.view(n), rounded.view(n), Write::overwrite);
    kernel::Convert<CudaSpace>::run<T, float>(stream.view(), from.view(n), sum.view(n), Write::add);
    kernel::Convert<CudaSpace>::run<float, T>(stream.view(), rounded.view(n), again.view(n));
    for (auto write : {Write::overwrite, Write::add})
      kernel::Convert<CudaSpace>::run_scaled<T, float>(stream.view(), from.view(n), factor.view(1).data, scaled.view(n),
                                                       write);
    auto const low = rounded.values(), added = sum.values(), twice = scaled.values();
    auto const wide = again.values();
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i)
      right = right && low[i].bits == T(x[i]).bits && added[i].bits == T(7.0f + x[i]).bits &&
              wide[i] == static_cast<float>(low[i]) &&
              twice[i].bits == T(static_cast<float>(T(0x1p-3f * x[i])) + 0x1p-3f * x[i]).bits;
    CHECK(right);
  }
}
