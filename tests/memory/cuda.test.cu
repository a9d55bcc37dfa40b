// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/cuda.cuh>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/device.hpp"

using namespace lockstep;

TEST_CASE("a failed call becomes an error that names the call and the reason") {
  CHECK_NOTHROW(memory::check_cuda(cudaSuccess, "fine"));
  CHECK_THROWS_WITH_AS(memory::check_cuda(cudaErrorInvalidValue, "cudaThing"),
                       doctest::Contains("cudaThing: invalid argument"), CudaError);
}

TEST_CASE("device memory is zeroed, and a request that cannot be met reports its size") {
  if (!lockstep_test::has_gpu("memory::CudaResource")) return;
  CHECK(lockstep_test::OnDevice<int>(std::vector<int>{1, 2, 3}).values() == std::vector<int>{1, 2, 3});
  memory::CudaResource resource;
  auto const block = resource.allocate(1000);
  std::vector<unsigned char> bytes(1000, 1);
  memory::check_cuda(cudaMemcpy(bytes.data(), block.data(), 1000, cudaMemcpyDeviceToHost), "cudaMemcpy");
  CHECK(bytes == std::vector<unsigned char>(1000, 0));
  CHECK_THROWS_WITH_AS(static_cast<void>(resource.allocate(std::size_t{1} << 50)),
                       doctest::Contains("1125899906842624 bytes"), CudaError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // or CUB's next launch would report it
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
  event.make_wait(second.view());
  memory::check_cuda(cudaMemcpyAsync(to.data(), on_device.data(), bytes, cudaMemcpyDeviceToHost, second.view().get()),
                     "cudaMemcpyAsync");
  event.record(second.view());
  while (!event.reached()) CHECK(cudaPeekAtLastError() == cudaSuccess);  // a late event is not an error
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(std::memcmp(from.data(), to.data(), bytes) == 0);
}

TEST_CASE("existing memory is page-locked temporarily, and copied concurrently with the host's work") {
  if (!lockstep_test::has_gpu("memory::PageLock")) return;
  constexpr std::size_t bytes = std::size_t{1} << 20;
  memory::CudaResource device;
  auto const on_device = device.allocate(bytes);
  std::vector<std::byte> from(bytes, std::byte{5}), to(bytes);
  memory::CudaStream const stream(memory::CudaStream::Priority::highest);
  for (int times = 0; times < 2; ++times) {
    memory::PageLock const first(from.data(), bytes), second(to.data(), bytes), again(to.data(), bytes);
    CHECK(first.locked());
    CHECK(second.locked());
    CHECK_FALSE(again.locked());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    std::memset(to.data(), 0, bytes);
    for (auto const& [target, source] :
         {std::pair(on_device.data(), from.data()), std::pair(to.data(), on_device.data())})
      memory::check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream.view().get()),
                         "cudaMemcpyAsync");
#if defined(LOCKSTEP_CUDA_EMULATION)
    CHECK(to != from);  // not copied yet
#endif
    stream.view().synchronize();
    CHECK(to == from);
  }
  CHECK_FALSE(memory::PageLock(nullptr, 0).locked());
}

TEST_CASE("a stream has the requested priority") {
  if (!lockstep_test::has_gpu("memory::CudaStream::Priority")) return;
  memory::CudaStream const normal, highest(memory::CudaStream::Priority::highest);
  int least = 0, greatest = 0, of_normal = 0, of_highest = 0;
  memory::check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  memory::check_cuda(cudaStreamGetPriority(normal.view().get(), &of_normal), "cudaStreamGetPriority");
  memory::check_cuda(cudaStreamGetPriority(highest.view().get(), &of_highest), "cudaStreamGetPriority");
  CHECK(of_normal == least);
  CHECK(of_highest == greatest);
}

TEST_CASE("a forked branch runs after earlier work of its stream, and before work queued after the join") {
  if (!lockstep_test::has_gpu("memory::Stream<CudaSpace>")) return;
  memory::PinnedResource pinned;
  memory::CudaResource device;
  constexpr std::size_t bytes = std::size_t{1} << 20;
  auto const from = pinned.allocate(bytes), to = pinned.allocate(bytes);
  auto const first = device.allocate(bytes), second = device.allocate(bytes);
  memory::CudaStream const stream;
  auto const copy = [&](memory::Stream<CudaSpace> on, memory::Block const& out, memory::Block const& in,
                        cudaMemcpyKind kind) {
    memory::check_cuda(cudaMemcpyAsync(out.data(), in.data(), bytes, kind, on.get()), "cudaMemcpyAsync");
  };
  stream.view().join();  // without a branch
  for (int value = 1; value < 6; ++value) {
    std::memset(from.data(), value, bytes);
    copy(stream.view(), first, from, cudaMemcpyHostToDevice);
    auto const forked = stream.view().fork();
    CHECK(forked.get() != stream.view().get());
    CHECK(forked.get() == stream.view().fork().get());
    copy(forked, second, first, cudaMemcpyDeviceToDevice);
    stream.view().join();
    copy(stream.view(), to, second, cudaMemcpyDeviceToHost);
    stream.view().synchronize();
    CHECK(std::memcmp(from.data(), to.data(), bytes) == 0);
  }
}

TEST_CASE("a stream counts its work, and its branch's work after the join") {
  if (!lockstep_test::has_gpu("memory::Stream<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto const view = stream.view();
  view.queued().add_products(10, sizeof(float));
  view.queued().add_products(20, sizeof(double));
  view.queued().add_products(5, 2);
  auto const before = view.queued();
  CHECK(before.operations == 50);
  CHECK(before.half_operations == 5);
  auto const branch = view.fork();
  ++branch.queued().kernels;
  branch.queued().add_products(3, sizeof(float));
  CHECK(view.queued().kernels == 0);
  view.join();
  CHECK(view.queued().kernels == 1);
  CHECK(view.queued().since(before).operations == 3);
  CHECK(branch.queued().kernels == 0);
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("errors with a remedy say it") {
  auto const text = [](cudaError_t status) {
    try {
      memory::check_cuda(status, "cudaGetDeviceCount");
    } catch (CudaError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto const has = [](std::string const& all, char const* part) { return all.find(part) != std::string::npos; };
  cuda_emulation::driver = 0;
  CHECK(has(text(cudaErrorInsufficientDriver), "; this machine has no NVIDIA driver"));
  cuda_emulation::driver = 12020;
  CHECK(has(text(cudaErrorInsufficientDriver),
            "; the driver is for CUDA 12.2 and the program was built with CUDA 12.4: update the driver"));
  cuda_emulation::driver = 12080;
  CHECK(has(text(cudaErrorNoDevice), "CUDA_VISIBLE_DEVICES hides"));
  CHECK(has(text(cudaErrorInvalidDevice), "; this process sees 1 GPU, numbered from 0"));
  for (auto const status : {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion})
    CHECK(has(text(status), "-DCMAKE_CUDA_ARCHITECTURES=native"));
  CHECK(has(text(cudaErrorIllegalAddress), "compute-sanitizer"));
  CHECK(has(text(cudaErrorMemoryAllocation), "nvidia-smi lists them; end them, or choose another GPU (--gpu-ids"));
  CHECK_FALSE(has(text(cudaErrorInvalidValue), ";"));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(memory::CudaResource{}.allocate(std::size_t{1} << 50)),
      doctest::Contains("out of memory; GPU 0 has 1536 of 2048 MiB free; smaller batches (--batch-size)"), CudaError);
  CHECK_THROWS_WITH_AS(static_cast<void>(memory::PinnedResource{}.allocate(std::size_t{1} << 50)),
                       doctest::Contains("cudaMallocHost of 1125899906842624 bytes: out of memory; smaller batches"),
                       CudaError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("page-locked memory belongs to the requested device, and threads without a device initialize no other") {
  cuda_emulation::devices = 2;
  memory::check_cuda(cudaSetDevice(1), "cudaSetDevice");
  memory::PinnedResource const pinned;
  cuda_emulation::awake = 0;
  std::thread([&] {
    auto const block = pinned.allocate(100);
    CHECK(cuda_emulation::Memory::instance().find(block.data())->number == 1);
  }).join();
  CHECK(cuda_emulation::awake == 2);
  int device = -1;
  memory::check_cuda(cudaSetDevice(0), "cudaSetDevice");
  static_cast<void>(pinned.allocate(100));
  memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  CHECK(device == 0);
  cuda_emulation::devices = 1;
}

#endif
