// SPDX-License-Identifier: Apache-2.0
// The emulation refuses the calls that CUDA refuses: each case has calls that a GPU accepts and calls that it refuses.
#include <cuda_runtime.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "death_of.hpp"

namespace {

/// A stream, an event with or without timing, and some memory, of a device that is current at their creation.
struct Things {
  explicit Things(int device = 0, unsigned flags = cudaEventDefault) {
    CHECK(cudaSetDevice(device) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaEventCreateWithFlags(&event, flags) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 64) == cudaSuccess);
  }
  Things(Things const&) = delete;
  Things& operator=(Things const&) = delete;
  ~Things() {
    CHECK(cudaFree(memory) == cudaSuccess);
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaGetLastError();
  }
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  float* memory = nullptr;
};

struct Devices {
  explicit Devices(int count) { cuda_emulation::devices = count; }
  ~Devices() {
    cuda_emulation::devices = 1;
    cuda_emulation::current_device = 0;
  }
};

struct View {
  long size;
  float* data;
};
void put(View to, float value) { to.data[0] = value; }

cudaError_t launch_put(cudaStream_t stream, View to) {
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, put, to, 5.0f);
}

/// Whether f ends a child process by abort.
template <class F>
bool aborts(F const& f) {
  auto const status = lockstep_test::death_of(f).status;
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("a thread's last error stays until it is read") {
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  std::thread([] { CHECK(cudaPeekAtLastError() == cudaSuccess); }).join();
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("kernels, events and fills go to streams of the current device, copies to any") {
  Devices const two(2);
  Things const first(0), second(1);  // the last one's device is current
  CHECK(launch_put(second.stream, {1, second.memory}) == cudaSuccess);
  CHECK(launch_put(first.stream, {1, second.memory}) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemsetAsync(first.memory, 0, 4, first.stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(first.event, second.stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(second.event, second.stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(first.stream, second.event, 0) == cudaSuccess);
  CHECK(cudaMemcpyAsync(first.memory, second.memory, 4, cudaMemcpyDefault, first.stream) == cudaSuccess);
  float got = 0;
  CHECK(cudaMemcpyAsync(&got, first.memory, 4, cudaMemcpyDeviceToHost, first.stream) == cudaSuccess);
  CHECK(got == 5);
}

TEST_CASE("a kernel cannot access another device's memory, also through an address within an argument") {
  Devices const two(2);
  Things const first(0), second(1);
  CHECK(launch_put(second.stream, {1, first.memory}) == cudaErrorIllegalAddress);
  void* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, 64) == cudaSuccess);
  CHECK(launch_put(second.stream, {1, static_cast<float*>(pinned)}) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("bytes in an argument's padding are not taken for addresses") {
  struct Padded {
    bool flag;
    float* data;
  };
  Devices const two(2);
  Things const first(0), second(1);
  Padded argument;
  float* const other = first.memory;
  std::memcpy(&argument, &other, sizeof other);  // all but one byte are padding
  argument.flag = false;
  argument.data = second.memory;
  auto const use = [](Padded to) { to.data[0] = to.flag ? 1 : 2; };
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = second.stream;
  CHECK(cudaLaunchKernelEx(&config, +use, argument) == cudaSuccess);
}

TEST_CASE("waiting for a device is refused while any thread captures a stream of it") {
  Things const things, other;
  cudaGraph_t graph = nullptr;
  auto const capture = [&](auto const& elsewhere) {
    CHECK(cudaStreamBeginCapture(things.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    std::thread(elsewhere).join();
    return cudaStreamEndCapture(things.stream, &graph);
  };
  CHECK(capture([] { CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported); }) ==
        cudaErrorStreamCaptureInvalidated);
  CHECK(capture([&] { CHECK(cudaStreamSynchronize(things.stream) == cudaErrorStreamCaptureUnsupported); }) ==
        cudaErrorStreamCaptureInvalidated);
  CHECK(capture([&] {  // none of these affects another thread's capture
          void* memory = nullptr;
          CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
          CHECK(cudaFree(memory) == cudaSuccess);
          CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
          CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
        }) == cudaSuccess);
  cudaGraphDestroy(graph);
}

TEST_CASE("a thread that captures a stream may use others, and have them wait for each other") {
  Things const things, other, third;
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(things.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaEventRecord(other.event, other.stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(third.stream, other.event, 0) == cudaSuccess);
  CHECK(cudaStreamEndCapture(things.stream, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  CHECK(cudaStreamBeginCapture(things.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(things.stream, other.event, 0) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(things.stream, &graph) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("a stream that waits for a capture's event is captured until the first stream's capture ends") {
  Things const first, beside, third;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  auto const begin = [&] {
    CHECK(cudaStreamBeginCapture(first.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(cudaEventRecord(first.event, first.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(beside.stream, first.event, 0) == cudaSuccess);
  };
  auto const fill = [](Things const& things, float* memory, int value) {
    CHECK(cudaMemsetAsync(memory, value, 4, things.stream) == cudaSuccess);
  };
  auto const join = [&] {
    CHECK(cudaEventRecord(beside.event, beside.stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(first.stream, beside.event, 0) == cudaSuccess);
  };
  auto const end = [&] { return cudaStreamEndCapture(first.stream, &graph); };
  begin();
  fill(first, first.memory + 1, 1);
  for (int i = 0; i < 20; ++i) fill(beside, beside.memory, i);
  join();
  CHECK(cudaMemcpyAsync(first.memory, beside.memory, 4, cudaMemcpyDeviceToDevice, first.stream) == cudaSuccess);
  cudaStreamCaptureStatus status{};
  CHECK(cudaStreamIsCapturing(beside.stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(cudaStreamEndCapture(beside.stream, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(end() == cudaSuccess);
  CHECK(cudaStreamIsCapturing(beside.stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
  CHECK(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
  for (int launch = 0; launch < 3; ++launch) {
    CHECK(cudaMemset(beside.memory, 0, 4) == cudaSuccess);
    CHECK(cudaMemset(first.memory, 0, 4) == cudaSuccess);
    CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(cudaGraphLaunch(executable, first.stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(first.stream) == cudaSuccess);
    unsigned seen = 0;
    CHECK(cudaMemcpy(&seen, first.memory, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(seen == 0x13131313);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  begin();
  join();
  fill(beside, beside.memory, 1);  // no stream waits for it
  CHECK(end() == cudaErrorStreamCaptureUnjoined);
  begin();
  CHECK(cudaStreamSynchronize(beside.stream) == cudaErrorStreamCaptureUnsupported);
  join();
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamWaitEvent(third.stream, first.event, 0) == cudaErrorCapturedEvent);  // its capture is over
  CHECK(cudaEventRecord(first.event, first.stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(third.stream, first.event, 0) == cudaSuccess);
}

TEST_CASE("a stream is destroyed after its work") {
  Things const things;
  for (bool const waits : {true, false})
    CHECK(aborts([&] {
            cudaMemsetAsync(things.memory, 0, 4, things.stream);
            if (waits) cudaStreamSynchronize(things.stream);
            cudaStreamDestroy(things.stream);
          }) == !waits);
}

TEST_CASE("an event that was never recorded is not waited for, and has no time") {
  Things const things, untimed(0, cudaEventDisableTiming);
  CHECK(cudaStreamWaitEvent(things.stream, things.event, 0) == cudaSuccess);
  CHECK(cudaEventQuery(things.event) == cudaSuccess);
  CHECK(cudaEventSynchronize(things.event) == cudaSuccess);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, things.event, things.event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(untimed.event, untimed.stream) == cudaSuccess);
  CHECK(cudaEventRecord(things.event, things.stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(things.event) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, untimed.event, things.event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&milliseconds, things.event, things.event) == cudaSuccess);
}

TEST_CASE("copies and fills stay within memory, and go to the requested place") {
  Things const things;
  std::vector<float> host(100);
  auto const copy = [&](void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, things.stream);
  };
  CHECK(copy(things.memory, host.data(), 64, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(copy(things.memory, host.data(), 65, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(copy(things.memory + 8, host.data(), 33, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(copy(things.memory, host.data(), 8, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
  CHECK(copy(things.memory, host.data(), 8, cudaMemcpyDeviceToDevice) == cudaErrorInvalidMemcpyDirection);
  CHECK(copy(things.memory, host.data(), 8, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemsetAsync(things.memory, 0, 65, things.stream) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(host.data(), 0, 4, things.stream) == cudaErrorInvalidValue);
}

TEST_CASE("all of new memory is NaN") {
  constexpr std::size_t count = std::size_t{3} << 19;  // 6 MiB
  float* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, count * sizeof(float)) == cudaSuccess);
  CHECK(std::isnan(memory[0]));
  CHECK(std::isnan(memory[count - 1]));
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("a large fill with zeros writes all of its bytes and no others") {
  constexpr std::size_t bytes = std::size_t{4} << 20, begin = 100, filled = (std::size_t{3} << 20) + 5;
  unsigned char* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes) == cudaSuccess);
  CHECK(cudaMemset(memory + begin, 0, filled) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(std::count(memory, memory + bytes, 0) == filled);
  CHECK(memory[begin - 1] == 0xff);
  CHECK(memory[begin + filled] == 0xff);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("memory is freed once, as a whole, with the matching call") {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 64) == cudaSuccess);
  CHECK(cudaFreeHost(memory) == cudaErrorInvalidValue);
  CHECK(cudaFree(static_cast<char*>(memory) + 8) == cudaErrorInvalidValue);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("every call that needs a device initializes the current one, also on a thread without a chosen device") {
  Devices const two(2);
  cuda_emulation::awake = 0;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(cuda_emulation::awake == 0);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  CHECK(cuda_emulation::awake == 2);
  std::thread([] { CHECK(cudaFree(nullptr) == cudaSuccess); }).join();
  CHECK(cuda_emulation::awake == 3);
}

TEST_CASE("frees during work that waits for another device are counted") {
  Things const things;
  auto const before = cuda_emulation::frees_beside_peers.load();
  cuda_emulation::Device::instance().push(
      things.stream, {{}, nullptr, 0, [=] { return cuda_emulation::frees_beside_peers > before; }});
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 8) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cuda_emulation::frees_beside_peers == before + 1);
}

TEST_CASE("page-locked memory cannot be freed while it is copied") {
  Things const things;
  for (bool const waits : {true, false}) {
    void* pinned = nullptr;
    CHECK(cudaMallocHost(&pinned, 64) == cudaSuccess);
    CHECK(cudaMemcpyAsync(things.memory, pinned, 64, cudaMemcpyHostToDevice, things.stream) == cudaSuccess);
    if (waits) CHECK(cudaStreamSynchronize(things.stream) == cudaSuccess);
    CHECK(aborts([=] { cudaFreeHost(pinned); }) == !waits);
    cudaStreamSynchronize(things.stream);
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
  }
}

TEST_CASE("a library's handle is destroyed while its device is current, and a device is reset after its memory") {
  Devices const two(2);
  for (int const device : {0, 1})
    CHECK(aborts([=] {
            cuda_emulation::OfDevice const handle;
            cudaSetDevice(device);
          }) == (device == 1));
  CHECK(aborts([] {
    cuda_emulation::OwnDevice const device;
    void* memory = nullptr;
    cudaMalloc(&memory, 8);
  }));
}
