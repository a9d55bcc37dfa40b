// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

#include <suite.hpp>

namespace lockstep_bench {

/// Work on a stream; it holds its memory.
using DevicePass = std::function<void()>;
using MakeDevicePass = std::function<DevicePass(lockstep::memory::Stream<lockstep::CudaSpace>)>;

template <class T>
using DeviceBuffer = lockstep::memory::Buffer<T, lockstep::CudaSpace>;

/// Zeroed device memory that copies of the result share.
template <class T>
std::shared_ptr<DeviceBuffer<T>> device_buffer(lockstep::Index size) {
  return std::make_shared<DeviceBuffer<T>>(size, lockstep::memory::CudaResource{});
}

inline bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

/// Registers a pass on the GPU by wall-clock time: its calls are queued, and waited for together. `bytes` is the
/// minimum that a pass reads and writes, or 0.
inline auto* add_device_pass(std::string const& name, double bytes, MakeDevicePass make) {
  return add(name,
             [=](benchmark::State& state) {
               if (!has_gpu()) return skip(state, "no GPU answers");
               lockstep::memory::CudaStream stream;
               auto const pass = make(stream.view());
               for (int i = 0; i < 3; ++i) pass();
               stream.view().synchronize();
               while (state.KeepRunningBatch(state.max_iterations)) {
                 auto const began = lockstep::Clock::seconds();
                 for (benchmark::IterationCount i = 0; i < state.max_iterations; ++i) pass();
                 stream.view().synchronize();
                 state.SetIterationTime(lockstep::Clock::seconds() - began);
               }
               if (bytes > 0)
                 state.SetBytesProcessed(static_cast<std::int64_t>(bytes * static_cast<double>(state.iterations())));
             })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

/// Copies memory that is far larger than any cache, or `size` bytes of it.
inline DevicePass device_copy(lockstep::memory::Stream<lockstep::CudaSpace> stream,
                              lockstep::Index size = lockstep::Index{512} << 20) {
  return [stream, size, from = device_buffer<char>(size), to = device_buffer<char>(size)] {
    lockstep::memory::check_cuda(cudaMemcpyAsync(to->data(), from->data(), static_cast<std::size_t>(size),
                                                 cudaMemcpyDeviceToDevice, stream.get()),
                                 "cudaMemcpyAsync");
  };
}

/// Registers a kernel with its roof, a copy on the same device.
inline void add_device_kernel(std::string const& name, double bytes, MakeDevicePass make) {
  add_device_pass(name, bytes, std::move(make));
  add_device_pass(name + "/peer:roof", 2 * static_cast<double>(lockstep::Index{512} << 20),
                  [](lockstep::memory::Stream<lockstep::CudaSpace> stream) { return device_copy(stream); });
}

}  // namespace lockstep_bench
