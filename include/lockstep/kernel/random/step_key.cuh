// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/random/step_key.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version of the primary template.
template <>
class StepKey<CudaSpace> {
 public:
  /// Sets the key for later work in the stream. Must not be recorded.
  void set(memory::Stream<CudaSpace> stream, std::uint64_t key) const;
  /// Returns the same mask as on the host, bit-identical. The key is computed where it is used.
  [[nodiscard]] DropoutMask mask(std::uint64_t number, std::uint32_t dropped) const noexcept;

 private:
  memory::Buffer<std::uint64_t, CudaSpace> key_{1, memory::CudaResource{}};
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/random/step_key.icuh>
#endif
