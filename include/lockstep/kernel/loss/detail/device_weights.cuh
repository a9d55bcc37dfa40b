// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A stream's device copies of class and column weights, found by their values: a model has one or two sets.
class DeviceWeights {
 public:
  /// Returns the device copy of `weights`, or null if they are empty.
  [[nodiscard]] float const* of(std::span<float const> weights) {
    if (weights.empty()) return nullptr;
    for (auto const& [on_host, on_device] : copies_)
      if (std::equal(on_host.begin(), on_host.end(), weights.begin(), weights.end())) return on_device.data();
    memory::CudaResource resource;
    memory::Buffer<float, CudaSpace> copy(static_cast<Index>(weights.size()), resource);
    memory::check_cuda(cudaMemcpy(copy.data(), weights.data(), weights.size_bytes(), cudaMemcpyHostToDevice),
                       "cudaMemcpy");
    memory::check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // the copy may still be running
    copies_.emplace_back(std::vector(weights.begin(), weights.end()), std::move(copy));
    return copies_.back().second.data();
  }

 private:
  std::vector<std::pair<std::vector<float>, memory::Buffer<float, CudaSpace>>> copies_;
};

}}}  // namespace lockstep::kernel::detail
