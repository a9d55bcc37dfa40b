// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/cuda.cuh>

#include <doctest/doctest.h>

#include <limits>

#include "memory/device.hpp"

using namespace lockstep;

TEST_CASE("a failed call becomes an error that names the call and the reason") {
  CHECK_NOTHROW(memory::check_cuda(cudaSuccess, "fine"));
  CHECK_THROWS_WITH_AS(memory::check_cuda(cudaErrorInvalidValue, "cudaThing"),
                       doctest::Contains("cudaThing: invalid argument"), CudaError);
}

TEST_CASE("device memory comes zeroed, and a request that cannot be met says its size") {
  if (!lockstep_test::has_gpu("memory::CudaResource")) return;
  CHECK(lockstep_test::OnDevice<int>(std::vector<int>{1, 2, 3}).values() == std::vector<int>{1, 2, 3});
  memory::CudaResource resource;
  auto const block = resource.allocate(1000);
  std::vector<unsigned char> bytes(1000, 1);
  memory::check_cuda(cudaMemcpy(bytes.data(), block.data(), 1000, cudaMemcpyDeviceToHost), "cudaMemcpy");
  CHECK(bytes == std::vector<unsigned char>(1000, 0));
  CHECK_THROWS_WITH_AS(static_cast<void>(resource.allocate(std::size_t{1} << 50)),
                       doctest::Contains("1125899906842624 bytes"), CudaError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // or the next launch of CUB would fail by it
}

TEST_CASE("work of one stream waits for an event of another") {
  if (!lockstep_test::has_gpu("memory::CudaEvent")) return;
  memory::PinnedResource pinned;
  memory::CudaResource device;
  constexpr std::size_t bytes = std::size_t{64} << 20;
  auto const from = pinned.allocate(bytes), to = pinned.allocate(bytes);
  auto const on_device = device.allocate(bytes);
  std::memset(from.data(), 5, bytes);
  memory::CudaStream first, second;
  memory::CudaEvent event;
  memory::check_cuda(cudaMemcpyAsync(on_device.data(), from.data(), bytes, cudaMemcpyHostToDevice, first.view().get()),
                     "cudaMemcpyAsync");
  event.record(first.view());
  event.block(second.view());
  memory::check_cuda(cudaMemcpyAsync(to.data(), on_device.data(), bytes, cudaMemcpyDeviceToHost, second.view().get()),
                     "cudaMemcpyAsync");
  event.record(second.view());
  while (!event.reached()) CHECK(cudaPeekAtLastError() == cudaSuccess);  // to be late is no error
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(std::memcmp(from.data(), to.data(), bytes) == 0);
}
