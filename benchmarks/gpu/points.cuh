// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/tabulate.h>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph.cuh>

namespace lockstep_bench {

using namespace lockstep;

/// Names of rows that a run measures: those that contain one of the texts, or all.
class Filter {
 public:
  Filter(int argc, char** argv) : parts_(argv + std::min(argc, 1), argv + argc) {}
  [[nodiscard]] bool selects(std::string const& name) const {
    return parts_.empty() || std::any_of(parts_.begin(), parts_.end(),
                                         [&](std::string const& part) { return name.find(part) != std::string::npos; });
  }

 private:
  std::vector<std::string> parts_;
};

/// Prints a row: NAME, WAY, MICROSECONDS, BYTES, OPERATIONS, separated by tabs. BYTES is the least traffic to and from
/// device memory, OPERATIONS counts additions and multiplications of matrix products; 0 is unknown.
inline void print_row(std::string const& name, char const* way, double microseconds, double bytes = 0,
                      double operations = 0) {
  std::printf("%s\t%s\t%.2f\t%.0f\t%.0f\n", name.c_str(), way, microseconds, bytes, operations);
  std::fflush(stdout);
}

/// Calls f and reports an exception as a row that failed, so that the rows after it are measured.
template <class F>
void guarded(std::string const& name, F const& f) {
  try {
    f();
  } catch (std::exception const& error) {
    std::printf("FAILED\t%s\t%s\n", name.c_str(), error.what());
    std::fflush(stdout);
    static_cast<void>(cudaGetLastError());
  }
}

template <class T>
using DeviceBuffer = memory::Buffer<T, CudaSpace>;

template <class T>
DeviceBuffer<T> device(Index size) {
  return {size, memory::CudaResource{}};
}
template <class T>
DeviceBuffer<T> device_of(std::vector<T> const& values) {
  auto out = device<T>(static_cast<Index>(values.size()));
  thrust::copy(values.begin(), values.end(), thrust::device_pointer_cast(out.data()));
  return out;
}
/// Returns memory with numbers between -1 and 1.
template <class T>
DeviceBuffer<T> filled(Index size) {
  auto out = device<T>(size);
  thrust::tabulate(thrust::device, out.data(), out.data() + size, [] __device__(Index i) {
    auto const bits = (static_cast<std::uint32_t>(i) * 2654435761u) ^ 0x9e3779b9u;
    return static_cast<T>(static_cast<float>((bits * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f);
  });
  return out;
}

/// Copies of a case's memory. One copy is warm: a small case finds it in the cache. The copies of a cold case together
/// exceed the cache several times, and calls use them in turn.
template <class Set>
class Copies {
 public:
  /// @param make returns one copy, which has `bytes` bytes
  template <class Make>
  Copies(bool cold, double bytes, Make const& make) {
    auto const count = cold ? std::max(2.0, std::min(64.0, 200e6 / bytes + 1)) : 1.0;
    for (int i = 0; i < static_cast<int>(count); ++i) sets_.push_back(make());
  }
  [[nodiscard]] Set const& operator[](int call) const { return sets_[static_cast<std::size_t>(call) % sets_.size()]; }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(sets_.size()); }

 private:
  std::vector<Set> sets_;
};

/// Measures kernels on one stream.
class Points {
 public:
  explicit Points(Filter filter) : filter_(std::move(filter)) {
    for (auto& event : events_)
      memory::check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
  }
  Points(Points const&) = delete;
  Points& operator=(Points const&) = delete;
  ~Points() {
    for (auto const event : events_) cudaEventDestroy(event);
  }

  [[nodiscard]] memory::Stream<CudaSpace> stream() const noexcept { return stream_.view(); }
  [[nodiscard]] bool selects(std::string const& name) const { return filter_.selects(name); }

  /// Prints a row with the time that the device needs for the work that call(k) queues. k counts the calls, for Copies.
  /// The calls are recorded as one CUDA graph, so that launches from the host take no part. The row is the median of 5
  /// rounds of about 2 ms.
  /// @param copies a graph has a multiple of so many calls
  template <class Call>
  void measure(std::string const& name, double bytes, double operations, int copies, Call const& call) {
    if (!selects(name)) return;
    guarded(name, [&] {
      for (int k = 0; k < copies; ++k) call(k);  // plans, and memory that is allocated once
      auto const once = milliseconds([&] {
        for (int k = 0; k < copies; ++k) call(k);
      });
      auto const repeats = std::max(1, std::min(100, static_cast<int>(2 / std::max(once, 1e-3f))));
      memory::CudaGraph const graph(stream(), [&] {
        for (int k = 0; k < repeats * copies; ++k) call(k);
      });
      std::vector<float> rounds;
      for (int round = 0; round < 6; ++round) rounds.push_back(milliseconds([&] { graph.launch(stream()); }));
      rounds.erase(rounds.begin());  // the first replay uploads the graph
      std::sort(rounds.begin(), rounds.end());
      print_row(name, "lockstep", rounds[rounds.size() / 2] * 1e3 / (repeats * copies), bytes, operations);
    });
  }
  template <class Call>
  void measure(std::string const& name, double bytes, Call const& call) {
    measure(name, bytes, 0, 1, [&](int) { call(); });
  }

 private:
  /// Returns the device's time between the events around f.
  template <class F>
  [[nodiscard]] float milliseconds(F const& f) {
    memory::check_cuda(cudaEventRecord(events_[0], stream().get()), "cudaEventRecord");
    f();
    memory::check_cuda(cudaEventRecord(events_[1], stream().get()), "cudaEventRecord");
    stream().synchronize();
    float out = 0;
    memory::check_cuda(cudaEventElapsedTime(&out, events_[0], events_[1]), "cudaEventElapsedTime");
    return out;
  }

  Filter filter_;
  memory::CudaStream stream_;
  cudaEvent_t events_[2]{};
};

}  // namespace lockstep_bench
