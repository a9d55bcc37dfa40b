// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#define __CUDA_ARCH_LIST__ 750, 800, 860, 870, 880, 890, 900, 1000, 1030, 1100, 1200, 1210  // NOLINT: nvcc's for `all`
#include <lockstep/kernel/detail/launch.cuh>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "death_of.hpp"

namespace {

cudaLaunchConfig_t shape(dim3 grid, dim3 block) {
  cudaLaunchConfig_t config;
  config.gridDim = grid;
  config.blockDim = block;
  return config;
}
template <class... Parameters, class... Arguments>
cudaError_t launch(dim3 grid, dim3 block, void (*kernel)(Parameters...), Arguments... arguments) {
  auto const config = shape(grid, block);
  auto const status = cudaLaunchKernelEx(&config, kernel, arguments...);
  static_cast<void>(cudaGetLastError());
  return status == cudaSuccess ? cudaDeviceSynchronize() : status;
}

/// Runs two warps of the kernel in a child process, which dies of the kernel's error.
template <class... Parameters, class... Arguments>
void check_death(std::string const& why, void (*kernel)(Parameters...), Arguments... arguments) {
  auto const death = lockstep_test::death_of([&] { static_cast<void>(launch(1, 64, kernel, arguments...)); });
  CHECK(WIFSIGNALED(death.status));
  CHECK_MESSAGE(death.printed.find(why) != std::string::npos, death.printed);
}

namespace LOCKSTEP_CUDA_ABI {
void nothing() {}
}  // namespace LOCKSTEP_CUDA_ABI
using sm_750_800_860_870_880_890_900_1000_sm_1030_1100_1200_1210::nothing;  // for any number of them

struct Rows {
  int* data;
  long rows;
};
void read_rows(Rows) {}
void read_pointer(int const*) {}

void write_at_once(char* to, int from) { __stwb(reinterpret_cast<uint4*>(to + from), uint4{1, 2, 3, 4}); }

void turn(int* out) {
  auto* const values = reinterpret_cast<int*>(cuda_emulation::dynamic_shared());
  if (values[threadIdx.x] != -1) cuda_emulation::refuse_to_go_on("a block has values of another one");
  values[threadIdx.x] = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = values[63 - threadIdx.x];
}

void synchronize_lanes() {
  __syncthreads();
  __syncwarp();
  auto const other = __shfl_xor_sync(~0u, threadIdx.x, 1u);
  if (other != (threadIdx.x ^ 1)) cuda_emulation::refuse_to_go_on("a lane has the wrong value");
  bool const third = threadIdx.x % 3 == 0;
  auto const expected = threadIdx.x < 32 ? 0x49249249u : 0x92492492u;
  if (__ballot_sync(~0u, third) != expected || !__any_sync(~0u, third) || __any_sync(~0u, threadIdx.x > 63))
    cuda_emulation::refuse_to_go_on("a vote has the wrong result");
  __syncthreads();
}
void synchronize_in_two_branches() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
void meet_without_some() {
  if (threadIdx.x == 33) return;
  __syncthreads();
}
void exchange_without_some() {
  if (threadIdx.x == 5) return;
  static_cast<void>(__shfl_xor_sync(~0u, 1, 1u));
}
void exchange_with_few() {
  if (threadIdx.x < 40) static_cast<void>(__shfl_xor_sync(~0u, 1, 1u));
}
void exchange_or_wait() {
  if (threadIdx.x % 2)
    static_cast<void>(__shfl_xor_sync(~0u, 1, 1u));
  else
    __syncwarp();
}
void exchange_in_parts() { static_cast<void>(__shfl_xor_sync(0xffffu, 1, 1u)); }
void exchange_too_far() { static_cast<void>(__shfl_xor_sync(~0u, 1, 32u)); }

}  // namespace

TEST_CASE("grid and block sizes that CUDA refuses are refused") {
  CHECK(launch(1, 1024, nothing) == cudaSuccess);
  CHECK(launch(1, {32, 32}, nothing) == cudaSuccess);
  CHECK(launch({1, 65535}, 1, nothing) == cudaSuccess);
  for (dim3 const grid : {dim3(0), dim3(1, 0), dim3(1u << 31), dim3(1, 65536), dim3(1, 1, 2)})
    CHECK(launch(grid, 32, nothing) == cudaErrorInvalidConfiguration);
  for (dim3 const block : {dim3(0), dim3(1, 0), dim3(1025), dim3(32, 33), dim3(1u << 16, 1u << 16), dim3(1, 1, 2)})
    CHECK(launch(1, block, nothing) == cudaErrorInvalidConfiguration);
}

TEST_CASE("a block has as much dynamic shared memory as the launch requests, and no values of another block") {
  int* out = nullptr;
  REQUIRE(cudaMalloc(&out, 3 * 64 * sizeof(int)) == cudaSuccess);
  auto const launch_with = [&](std::size_t bytes) {
    auto config = shape(3, 64);
    config.dynamicSmemBytes = bytes;
    auto const status = cudaLaunchKernelEx(&config, turn, out);
    CHECK(cudaGetLastError() == status);
    return status == cudaSuccess ? cudaStreamSynchronize(nullptr) : status;
  };
  CHECK(launch_with(64 * sizeof(int)) == cudaSuccess);
  for (int i = 0; i < 3 * 64; ++i) CHECK(out[i] == i / 64 * 100 + 63 - i % 64);
  check_death("uses dynamic shared memory, but its launch requests none", turn, out);

  auto const allow = [](int bytes) {
    return cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  CHECK(launch_with(48 << 10) == cudaSuccess);
  CHECK(launch_with((48 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(allow(227 << 10) == cudaSuccess);
  CHECK(launch_with(227 << 10) == cudaSuccess);
  CHECK(allow((227 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  cuda_emulation::compute_capability = 8;
  CHECK(allow((163 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(allow(163 << 10) == cudaSuccess);
  cuda_emulation::compute_capability = 9;
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(allow(1 << 10) == cudaSuccess);
  CHECK(launch_with((1 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(out) == cudaSuccess);

  cuda_emulation::devices = 2;  // each device has its own limits of kernels
  CHECK(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaMalloc(&out, 3 * 64 * sizeof(int)) == cudaSuccess);
  CHECK(launch_with(2 << 10) == cudaSuccess);
  CHECK(cudaFree(out) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  cuda_emulation::devices = 1;
}

TEST_CASE("kernel arguments must be device memory, and aligned") {
  int* data = nullptr;
  REQUIRE(cudaMalloc(&data, 40 * sizeof(int)) == cudaSuccess);
  CHECK(launch(1, 1, read_rows, Rows{data, 40}) == cudaSuccess);
  CHECK(launch(1, 1, read_pointer, data + 40) == cudaSuccess);
  CHECK(launch(1, 1, read_rows, Rows{nullptr, 0}) == cudaSuccess);
  auto const* const beside = reinterpret_cast<int const*>(reinterpret_cast<char const*>(data) + 1);
  check_death("argument 0 of a kernel is not aligned", read_pointer, beside);
  auto* const bytes = reinterpret_cast<char*>(data);
  CHECK(launch(1, 1, write_at_once, bytes, 16) == cudaSuccess);
  check_death("16 bytes are written to an address that is not aligned", write_at_once, bytes, 8);
  std::vector<int> on_heap(1000);
  int on_stack = 0;
  for (int* const on_host : {on_heap.data(), &on_stack})
    check_death("argument 0 of a kernel has the address of host memory at byte 0", read_rows, Rows{on_host, 1});
  CHECK(cudaFree(data) == cudaSuccess);
}

TEST_CASE("all threads of a block must reach one barrier") {
  CHECK(launch(2, 64, synchronize_lanes) == cudaSuccess);
  check_death("threads that should meet wait at", synchronize_in_two_branches);
  check_death("for others, which wait elsewhere, have returned", meet_without_some);
  check_death("for others, which wait elsewhere, have returned", exchange_without_some);
  check_death("or do not exist", exchange_with_few);
  check_death("threads that should meet wait at", exchange_or_wait);
  check_death("in parts", exchange_in_parts);
  check_death("is asked for at", exchange_too_far);
}
