// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/tensor_core.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace tensor_core {
namespace {

/// One warp computes c = a b for a [16, 16] and b [16, 8], which is stored by columns, or by rows if `by_rows`.
template <class T>
__global__ void multiply(T const* a, T const* b, bool by_rows, float* c) {
  using namespace kernel::detail;
  __shared__ __align__(16) std::uint16_t rows[16][24], columns[8][24], transposed[16][8];
  auto const lane = static_cast<int>(threadIdx.x);
  copy_async<16>(&rows[lane / 2][lane % 2 * 8], a + lane * 8, true);
  if (lane < 16) copy_async<16>(by_rows ? &transposed[lane][0] : &columns[lane / 2][lane % 2 * 8], b + lane * 8, true);
  copy_async<8>(&rows[lane / 2][16 + lane % 2 * 4], a, false);
  wait_for_copies();
  __syncthreads();
  ElementPair left[4], right[4];
  load_matrices<Transposed::no>(left, &rows[lane % 16][lane / 16 * 8]);
  if (by_rows)
    load_matrices<Transposed::yes>(right, &transposed[lane % 16][0]);
  else
    load_matrices<Transposed::no>(right, &columns[lane % 8][lane / 8 % 2 * 8]);
  float sums[4] = {0, 0, 0, static_cast<float>(rows[lane / 2][16 + lane % 8])};  // zeros
  multiply_add<T>(sums, left, right[0], right[1]);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

/// One warp computes c = a b for floats, a [16, 8] and b [8, 8] by columns.
__global__ void multiply_floats(float const* a, float const* b, float* c) {
  using namespace kernel::detail;
  __shared__ __align__(16) float rows[16][12];
  auto const lane = static_cast<int>(threadIdx.x);
  copy_async<16>(&rows[lane / 2][lane % 2 * 4], a + lane * 4, true);
  wait_for_copies();
  __syncthreads();
  float left[4], sums[4] = {};
  load_matrices(left, &rows[lane % 16][lane / 16 * 4]);
  multiply_add(sums, left, b[lane / 4 * 8 + lane % 4], b[lane / 4 * 8 + lane % 4 + 4]);
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

template <class T>
__global__ void convert(float const* x, T* rounded, float* powers, float* logarithms) {
  auto const i = 2 * threadIdx.x;
  auto const pair = kernel::detail::pack<T>(x[i], x[i + 1]);
  rounded[i].bits = static_cast<std::uint16_t>(pair);
  rounded[i + 1].bits = static_cast<std::uint16_t>(pair >> 16);
  for (auto j = i; j < i + 2; ++j) {
    powers[j] = kernel::detail::fast_exp2(x[j]);
    logarithms[j] = kernel::detail::fast_log2(std::abs(x[j]));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("tensor cores multiply matrices from shared memory", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("tensor cores")) return;
  memory::CudaStream const stream;
  for (bool const by_rows : {false, true}) {
    // Small integers: every sum is exact, so each element shows its position.
    std::vector<T> a, b(128);
    for (int i = 0; i < 256; ++i) a.push_back(static_cast<T>(static_cast<float>(i * 7 % 23 - 11)));
    auto const element = [](int k, int n) { return static_cast<float>((k * 5 + n * 11) % 19 - 9); };
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < 8; ++n)
        b[static_cast<std::size_t>(by_rows ? k * 8 + n : n * 16 + k)] = static_cast<T>(element(k, n));
    OnDevice<T> const left(a), right(b);
    OnDevice<float> const product(std::vector<float>(128, -1));
    kernel::detail::launch_grid("multiply", stream.view(), 1, 32, multiply<T>, left.view(256).data,
                                right.view(128).data, by_rows, product.view(128).data);
    auto const got = product.values();
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n) {
        float sum = 0;
        for (int k = 0; k < 16; ++k) sum += static_cast<float>(a[static_cast<std::size_t>(m * 16 + k)]) * element(k, n);
        CAPTURE(m);
        CAPTURE(n);
        CHECK(got[static_cast<std::size_t>(m * 8 + n)] == sum);
      }
  }
}

TEST_CASE("tensor cores multiply floats as three products, with float's error") {
  if (!lockstep_test::has_gpu("tensor cores")) return;
  memory::CudaStream const stream;
  auto const a = lockstep_test::values<float>(128, 1), b = lockstep_test::values<float>(64, 2);
  OnDevice<float> const left(a), right(b), product(std::vector<float>(128, -1));
  kernel::detail::launch_grid("multiply_floats", stream.view(), 1, 32, multiply_floats, left.view(128).data,
                              right.view(64).data, product.view(128).data);
  auto const got = product.values();
  for (std::size_t m = 0; m < 16; ++m)
    for (std::size_t n = 0; n < 8; ++n) {
      double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < 8; ++k) {
        double const term = double{a[m * 8 + k]} * b[n * 8 + k];
        sum += term, magnitude += std::abs(term);
      }
      CAPTURE(m);
      CAPTURE(n);
      // 2^-20 of each product is lost, and each of 8 sums is rounded; with 11 bits, TF32 alone would lose 2^-11.
      CHECK(std::abs(got[m * 8 + n] - sum) <= magnitude * (0x1p-20 + 8 * 0x1p-23));
    }
}

TEST_CASE_TEMPLATE("pairs are rounded like single numbers; powers and logarithms are accurate", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("tensor cores")) return;
  memory::CudaStream const stream;
  std::vector<float> x;
  for (int i = 0; i < 64; ++i)
    x.push_back(std::ldexp(1 + static_cast<float>(i) / 61, i % 11 - 6) * (i % 2 ? -1.0f : 1));
  OnDevice<float> const numbers(x), powers(x), logarithms(x);
  OnDevice<T> const rounded(std::vector<T>(64));
  kernel::detail::launch_grid("convert", stream.view(), 1, 32, convert<T>, numbers.view(64).data, rounded.view(64).data,
                              powers.view(64).data, logarithms.view(64).data);
  auto const got = rounded.values();
  auto const power = powers.values(), logarithm = logarithms.values();
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CHECK(got[i].bits == T(x[i]).bits);
    CHECK(std::abs(power[i] / std::exp2(static_cast<double>(x[i])) - 1) <= 0x1p-21);
    auto const exact = std::log2(std::abs(static_cast<double>(x[i])));
    CHECK(std::abs(logarithm[i] - exact) <= 0x1p-21 * std::max(1.0, std::abs(exact)));
  }
}

}  // namespace tensor_core
