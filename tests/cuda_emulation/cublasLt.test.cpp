// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>

#define __CUDA_ARCH_LIST__ 0  // NOLINT: nvcc's
#include <lockstep/kernel/gemm/gemm.cuh>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE("the fastest algorithm is chosen for each GEMM separately") {
  using Gemm = kernel::Gemm<CudaSpace>;
  constexpr auto no = kernel::Transpose::no;
  memory::CudaStream const stream, like;
  Index const m = 9, k = 64, n = 5;
  OnDevice<float> const a(lockstep_test::values<float>(m * k, 1)), b(lockstep_test::values<float>(k * n, 2));
  auto const product = [&](memory::CudaStream const& on, Index rows) {
    OnDevice<float> const c(std::vector<float>(static_cast<std::size_t>(rows * n)));
    Gemm::multiply<float>(on.view(), 1, {a.view(m, k).data, {rows, k}}, no, b.view(k, n), no, 0, c.view(rows, n));
    return c.values();
  };
  auto const first = product(stream, m);
  cuda_emulation::lt_second_is_fastest = true;
  auto const choices = Gemm::choose_by_time(stream.view());
  cuda_emulation::lt_second_is_fastest = false;
  auto const second = product(stream, m);
  CHECK(second != first);  // it sums from the other end
  CHECK(product(like, m) == first);
  Gemm::take_choices(like.view(), choices);
  CHECK(product(like, m) == second);
  memory::CudaStream const other;
  auto const fewer = product(other, m - 1);
  Gemm::take_choices(other.view(), choices);
  CHECK(product(other, m - 1) == fewer);
  CHECK(product(other, m) == second);
}

TEST_CASE("a GEMM whose matrices do not fit in memory keeps its algorithm, and others are timed") {
  using Gemm = kernel::Gemm<CudaSpace>;
  constexpr auto no = kernel::Transpose::no;
  memory::CudaStream const stream, like;
  Index const k = 64, n = 5, few = 9, many = 900;
  OnDevice<float> const a(lockstep_test::values<float>(many * k, 1)), b(lockstep_test::values<float>(k * n, 2));
  auto const product = [&](memory::CudaStream const& on, Index rows) {
    OnDevice<float> const c(std::vector<float>(static_cast<std::size_t>(rows * n)));
    Gemm::multiply<float>(on.view(), 1, {a.view(many, k).data, {rows, k}}, no, b.view(k, n), no, 0, c.view(rows, n));
    return c.values();
  };
  auto const small = product(stream, few), large = product(stream, many);
  cuda_emulation::lt_second_is_fastest = true;
  auto const before = cuda_emulation::largest_block.exchange(100'000);
  auto const choices = Gemm::choose_by_time(stream.view());
  cuda_emulation::largest_block = before;
  cuda_emulation::lt_second_is_fastest = false;
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(product(stream, few) != small);
  CHECK(product(stream, many) == large);
  Gemm::take_choices(like.view(), choices);
  CHECK(product(like, few) == product(stream, few));
  CHECK(product(like, many) == large);
}

TEST_CASE("several GEMMs are one call if a kernel supports it, and the choice is kept") {
  using Gemm = kernel::Gemm<CudaSpace>;
  constexpr auto no = kernel::Transpose::no;
  Index const m = 9, k = 64, n = 8, count = 3;
  OnDevice<float> const a(lockstep_test::values<float>(m * k, 1)), b(lockstep_test::values<float>(count * k * n, 2));
  auto const together = [&](memory::CudaStream const& on) {
    OnDevice<float> const c(std::vector<float>(static_cast<std::size_t>(count * m * n)));
    bool const done = Gemm::try_multiply_each<float, float>(on.view(), count, {a.view(m, k), 0}, no,
                                                            {{b.view(0).data, {k, n}}, k * n}, no, 0,
                                                            {{c.view(0).data, {m, n}}, m * n});
    return done ? c.values() : std::vector<float>{};
  };
  memory::CudaStream const stream, like, without;
  std::vector<float> each;
  for (Index i = 0; i < count; ++i) {
    OnDevice<float> const c(std::vector<float>(static_cast<std::size_t>(m * n)));
    Gemm::multiply<float>(stream.view(), 1, a.view(m, k), no, {b.view(0).data + i * k * n, {k, n}}, no, 0,
                          c.view(m, n));
    auto const part = c.values();
    each.insert(each.end(), part.begin(), part.end());
  }
  CHECK(together(stream) == each);
  cuda_emulation::lt_second_is_fastest = true;
  auto const choices = Gemm::choose_by_time(stream.view());
  cuda_emulation::lt_second_is_fastest = false;
  CHECK(choices.find(" batch 3 0 512 72 0\n") != std::string::npos);
  auto const chosen = together(stream);
  CHECK(chosen != each);  // they sum from the other end
  Gemm::take_choices(like.view(), choices);
  CHECK(together(like) == chosen);
  cuda_emulation::lt_batches = false;
  CHECK(together(without).empty());
  cuda_emulation::lt_batches = true;
}
