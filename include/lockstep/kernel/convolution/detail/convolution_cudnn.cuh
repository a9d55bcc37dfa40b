// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution/detail/plan_cudnn.cuh>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/descriptor_cudnn.cuh>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Convolutions of float with cuDNN 9, with plans for the last shapes. The functions do what Convolution's do. They
/// return false if cuDNN has no deterministic algorithm or rejects it; they then wrote nothing except scratch memory.
class CudnnConvolution {
 public:
  using Stream = memory::Stream<CudaSpace>;
  using Scratch = memory::Scratch<memory::CudaResource>;

  /// Largest number of plans, as on the host.
  static constexpr std::size_t capacity = 24;

  /// @throws CudaError if cuDNN fails; names the shape
  [[nodiscard]] bool forward(Stream stream, ConvolutionShape const& s, float const* x, float const* weight,
                             float const* bias, float* y, Scratch& scratch);

  [[nodiscard]] bool backward_data(Stream stream, ConvolutionShape const& s, float const* dy, float const* weight,
                                   float* dx, Write write, Scratch& scratch);

  [[nodiscard]] bool backward_weight(Stream stream, ConvolutionShape const& s, float const* dy, float const* x,
                                     float* dweight, Write write, Scratch& scratch);

 private:
  static constexpr float one = 1, zero = 0;

  /// Memory of one call. The workspace is first, where it has cudaMalloc's alignment.
  struct Memory {
    Memory(Stream stream, CudnnPlan const& plan, ConvolutionShape const& s, Scratch& scratch) {
      auto const before = scratch.allocations();
      scratch.rewind({});  // like Convolution
      auto const bytes = (plan.workspace_bytes() + 255) / 256 * 256;
      workspace = scratch.take(bytes + static_cast<std::size_t>(s.weight_size()) * sizeof(float));
      weight = reinterpret_cast<float*>(workspace + bytes);
      if (scratch.allocations() != before) stream.memory_moved();
    }
    std::byte* workspace;
    float* weight;
  };

  /// Returns the stream's own handle.
  [[nodiscard]] static cudnnHandle_t handle(Stream stream);

  [[nodiscard]] CudnnPlan& find(Stream stream, ConvolutionShape const& shape, ConvolutionPass pass);

  static void count(Stream stream, ConvolutionShape const& s) noexcept;

  std::vector<CudnnPlan> plans_;
  std::size_t next_ = 0;
};

}}}  // namespace lockstep::kernel::detail
#endif

#if defined(LOCKSTEP_CUDNN) && !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/convolution/detail/convolution_cudnn.icuh>
#endif
