// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/mix.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// The part of random keys that changes with each micro-batch. It is stored in the kernels' space, so that recorded
/// device work finds a new key at each replay.
template <class Space>
class StepKey {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// CPU version of the primary template.
template <>
class StepKey<HostSpace> {
 public:
  /// Sets the key of the next micro-batch.
  void set(memory::Stream<HostSpace>, std::uint64_t key) noexcept { key_ = key; }
  /// Returns the mask of the micro-batch's random operation with this number. Its key is mix(key, number).
  [[nodiscard]] DropoutMask mask(std::uint64_t number, std::uint32_t dropped) const noexcept {
    return {mix(key_, number), dropped};
  }

 private:
  std::uint64_t key_ = 0;
};

}}}  // namespace lockstep::kernel
