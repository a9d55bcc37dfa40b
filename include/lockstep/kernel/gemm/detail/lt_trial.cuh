// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include <lockstep/kernel/gemm/detail/lt_choices.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Matrices of one kind of product, on which its algorithms are timed. They are in memory of their own, so nothing of
/// the training is read or written. They do not exist if the device has too little memory.
class LtTrial {
 public:
  LtTrial(memory::Stream<CudaSpace> stream, LtProduct const& kind) : stream_(stream) {
    std::size_t bytes = 0;
    auto const next = [&](Index elements, cudaDataType_t type) {
      return std::exchange(bytes, bytes + (static_cast<std::size_t>(elements) * size_of(type) + 255) / 256 * 256);
    };
    auto const& batch = kind.batch;
    auto const all = [&](Index elements, Index stride) { return elements + (batch.count - 1) * stride; };
    at_ = {next(all(kind.m * kind.k, batch.a_stride), kind.type), next(all(kind.k * kind.n, batch.b_stride), kind.type),
           next(all(kind.m * kind.n, batch.c_stride), kind.c_type), next(all(kind.n, batch.bias_stride), kind.c_type)};
    void* data = nullptr;
    auto const status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // CUB checks for errors after each launch, and would report ours
      return;
    }
    memory::check_cuda(status, "cudaMalloc");
    memory_ = memory::Block(static_cast<std::byte*>(data), bytes,
                            [](void*, std::byte* p, std::size_t) noexcept { cudaFree(p); });
    // A number near 0.01 or 1 in each type: zeros would take less power and thus less time.
    memory::check_cuda(cudaMemsetAsync(data, 0x3c, bytes, stream.get()), "cudaMemsetAsync");
    for (auto& event : events_)
      memory::check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
  }
  LtTrial(LtTrial const&) = delete;
  LtTrial& operator=(LtTrial const&) = delete;
  ~LtTrial() {
    for (auto const event : events_)
      if (event) cudaEventDestroy(event);
  }

  /// Whether the matrices fit into device memory.
  [[nodiscard]] explicit operator bool() const noexcept { return memory_.data() != nullptr; }
  [[nodiscard]] void const* a() const noexcept { return memory_.data() + at_[0]; }
  [[nodiscard]] void const* b() const noexcept { return memory_.data() + at_[1]; }
  [[nodiscard]] void* c() const noexcept { return memory_.data() + at_[2]; }
  [[nodiscard]] void const* bias() const noexcept { return memory_.data() + at_[3]; }

  /// Returns the time of the fastest of three rounds of `queue()`, in milliseconds; infinity if `queue()` returns false
  /// because it could not queue.
  template <class Queue>
  [[nodiscard]] double milliseconds(Queue const& queue) const {
    constexpr auto never = std::numeric_limits<double>::infinity();
    constexpr int rounds = 3, in_a_round = 8;
    if (!queue()) return never;  // the first call may load code
    auto minimum = never;
    for (int round = 0; round < rounds; ++round) {
      memory::check_cuda(cudaEventRecord(events_[0], stream_.get()), "cudaEventRecord");
      for (int i = 0; i < in_a_round; ++i)
        if (!queue()) return never;
      memory::check_cuda(cudaEventRecord(events_[1], stream_.get()), "cudaEventRecord");
      memory::check_cuda(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
      float took = 0;
      memory::check_cuda(cudaEventElapsedTime(&took, events_[0], events_[1]), "cudaEventElapsedTime");
      minimum = std::min(minimum, static_cast<double>(took));
    }
    return minimum;
  }

 private:
  [[nodiscard]] static std::size_t size_of(cudaDataType_t type) noexcept {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
  }

  memory::Stream<CudaSpace> stream_;
  memory::Block memory_;
  std::array<std::size_t, 4> at_{};  // offsets of a, b, c and the bias
  cudaEvent_t events_[2]{};
};

}}}  // namespace lockstep::kernel::detail
