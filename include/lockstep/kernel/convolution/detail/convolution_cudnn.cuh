// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution/detail/descriptor_cudnn.cuh>
#include <lockstep/kernel/convolution/detail/plan_cudnn.cuh>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/gemm/gemm.cuh>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes to[o, k, i] = weight[o, i, k]: cuDNN orders the axes of weights like those of the activations.
inline void put_inputs_last(memory::Stream<CudaSpace> stream, ConvolutionShape const& s, float const* weight,
                            float* to) {
  auto const taps = s.taps(), inputs = s.group_inputs();
  for_elements("kernel::Convolution", stream, s.weight_size(), [=] __device__(Index at) {
    auto const input = at % inputs, tap = at / inputs % taps, output = at / inputs / taps;
    to[at] = weight[(output * inputs + input) * taps + tap];
  });
}

/// Computes weight[o, i, k] = from[o, k, i], or adds it to the weight.
inline void take_inputs_last(memory::Stream<CudaSpace> stream, ConvolutionShape const& s, float const* from,
                             float* weight, Write write) {
  auto const taps = s.taps(), inputs = s.group_inputs();
  for_elements("kernel::Convolution", stream, s.weight_size(), [=] __device__(Index at) {
    auto const tap = at % taps, input = at / taps % inputs, output = at / taps / inputs;
    auto const value = from[(output * taps + tap) * inputs + input];
    weight[at] = write == Write::add ? weight[at] + value : value;
  });
}

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
                             float const* bias, float* y, Scratch& scratch) {
    auto& plan = find(stream, s, ConvolutionPass::forward);
    if (!plan.has_algorithm()) return false;
    count(stream, s);
    Memory const memory(stream, plan, s, scratch);
    put_inputs_last(stream, s, weight, memory.weight);
    auto const status = cudnnConvolutionForward(handle(stream), &one, plan.x(), x, plan.weight(), memory.weight,
                                                plan.geometry(), plan.algorithm<cudnnConvolutionFwdAlgo_t>(),
                                                memory.workspace, plan.workspace_bytes(), &zero, plan.y(), y);
    if (!plan.runs(status, "cudnnConvolutionForward")) return false;
    if (bias) scale_and_add<float>(stream, 1, {y, {s.rows * s.output_positions(), s.outputs}}, bias);
    return true;
  }

  [[nodiscard]] bool backward_data(Stream stream, ConvolutionShape const& s, float const* dy, float const* weight,
                                   float* dx, Write write, Scratch& scratch) {
    auto& plan = find(stream, s, ConvolutionPass::data);
    if (!plan.has_algorithm()) return false;
    count(stream, s);
    Memory const memory(stream, plan, s, scratch);
    put_inputs_last(stream, s, weight, memory.weight);
    return plan.runs(
        cudnnConvolutionBackwardData(handle(stream), &one, plan.weight(), memory.weight, plan.y(), dy, plan.geometry(),
                                     plan.algorithm<cudnnConvolutionBwdDataAlgo_t>(), memory.workspace,
                                     plan.workspace_bytes(), write == Write::add ? &one : &zero, plan.x(), dx),
        "cudnnConvolutionBackwardData");
  }

  [[nodiscard]] bool backward_weight(Stream stream, ConvolutionShape const& s, float const* dy, float const* x,
                                     float* dweight, Write write, Scratch& scratch) {
    auto& plan = find(stream, s, ConvolutionPass::weight);
    if (!plan.has_algorithm()) return false;
    count(stream, s);
    Memory const memory(stream, plan, s, scratch);
    auto const status =
        cudnnConvolutionBackwardFilter(handle(stream), &one, plan.x(), x, plan.y(), dy, plan.geometry(),
                                       plan.algorithm<cudnnConvolutionBwdFilterAlgo_t>(), memory.workspace,
                                       plan.workspace_bytes(), &zero, plan.weight(), memory.weight);
    if (!plan.runs(status, "cudnnConvolutionBackwardFilter")) return false;
    take_inputs_last(stream, s, memory.weight, dweight, write);
    return true;
  }

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
  [[nodiscard]] static cudnnHandle_t handle(Stream stream) {
    auto* const handle = stream.persistent<CudnnHandle>().get();
    check_cudnn(cudnnSetStream(handle, stream.get()), "cudnnSetStream");
    return handle;
  }

  [[nodiscard]] CudnnPlan& find(Stream stream, ConvolutionShape const& shape, ConvolutionPass pass) {
    for (auto& plan : plans_)
      if (plan.is(shape, pass)) return plan;
    CudnnPlan made(handle(stream), shape, pass);
    if (plans_.size() < capacity) return plans_.emplace_back(std::move(made));
    return plans_[next_++ % capacity] = std::move(made);
  }

  static void count(Stream stream, ConvolutionShape const& s) noexcept {
    ++stream.queued().kernels;
    stream.queued().add_products(
        2.0 * static_cast<double>(s.rows * s.output_positions()) * static_cast<double>(s.weight_size()), sizeof(float));
  }

  std::vector<CudnnPlan> plans_;
  std::size_t next_ = 0;
};

}}}  // namespace lockstep::kernel::detail
#endif
