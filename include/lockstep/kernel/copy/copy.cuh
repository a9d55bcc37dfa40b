// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Buffer for copies between overlapping ranges; grows to the largest copy.
struct CopyBuffer {
  memory::Block block;
};

}  // namespace detail

/// CUDA version of the primary template.
template <>
struct Copy<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, queued on the stream.
  template <class Scalar>
  static void run(Stream stream, Scalar const* from, Scalar* to, Index count) {
    if (from == to || count == 0) return;
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Scalar);
    auto const copy = [&](void* target, void const* source) {
      memory::check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream.get()),
                         "cudaMemcpyAsync");
    };
    auto const a = reinterpret_cast<std::uintptr_t>(from), b = reinterpret_cast<std::uintptr_t>(to);
    if (a + bytes <= b || b + bytes <= a) return copy(to, from);
    auto& waiting = stream.persistent<detail::CopyBuffer>().block;
    if (waiting.bytes() < bytes) {
      stream.synchronize();  // the old block may be in use
      memory::CudaResource{}.allocate(bytes).swap(waiting);
      stream.memory_moved();
    }
    copy(waiting.data(), from);
    copy(to, waiting.data());
  }
};

}}}  // namespace lockstep::kernel
