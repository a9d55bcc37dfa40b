// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/detail/device_limit.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

LOCKSTEP_INLINE double idle_ms(StepProfile const& profile) noexcept {
  auto const& gpu = profile.gpu;
  auto const phases = profile.data_wait_ms + profile.pass_ms + profile.communication_ms + profile.optimizer_ms;
  auto const between = std::max(0.0, profile.step_ms() - phases);
  return between + (gpu.busy_ms > 0 ? std::max(0.0, profile.pass_ms - gpu.busy_ms) : 0);
}

LOCKSTEP_INLINE DeviceLimit device_limit(StepProfile const& profile) noexcept {
  auto const& gpu = profile.gpu;
  if (gpu.kernels <= 0 || profile.pass_ms <= 0) return DeviceLimit::unknown;
  bool const waits = gpu.busy_ms > 0 ? idle_ms(profile) >= 0.25 * profile.step_ms() && profile.step_ms() > 0
                                     : gpu.queue_ms >= 0.8 * profile.pass_ms;
  if (waits) return DeviceLimit::launches;
  auto const busy_ms = gpu.busy_ms > 0 ? gpu.busy_ms : profile.pass_ms;
  if (busy_ms / gpu.kernels < small_kernel_ms) return DeviceLimit::small_kernels;
  if (gpu.product_ms + gpu.memory_ms <= 0) return DeviceLimit::unknown;
  return gpu.product_ms >= gpu.memory_ms ? DeviceLimit::arithmetic : DeviceLimit::memory;
}

LOCKSTEP_INLINE char const* name_of(DeviceLimit limit) noexcept {
  switch (limit) {
    case DeviceLimit::launches:
      return "launches";
    case DeviceLimit::small_kernels:
      return "small kernels";
    case DeviceLimit::memory:
      return "memory bandwidth";
    case DeviceLimit::arithmetic:
      return "arithmetic";
    case DeviceLimit::unknown:
      break;
  }
  return "compute";
}

LOCKSTEP_INLINE std::string reason_of(DeviceLimit limit, StepProfile const& profile) {
  auto const& gpu = profile.gpu;
  auto const busy_ms = gpu.busy_ms > 0 ? gpu.busy_ms : profile.pass_ms;
  auto const kernels = rounded(gpu.kernels, 0) + " kernels";
  if (limit == DeviceLimit::launches)
    return (gpu.busy_ms > 0 ? "the GPU waits for the host during " + rounded(idle_ms(profile), 2) + " of the " +
                                  rounded(profile.step_ms(), 2) + " ms of a step"
                            : "the host takes " + rounded(gpu.queue_ms, 2) + " of their " +
                                  rounded(profile.pass_ms, 2) + " ms to queue them") +
           ", which has " + kernels + "; " + rounded(100 * gpu.replayed, 0) +
           " % of the passes were replayed as CUDA graphs";
  if (limit == DeviceLimit::small_kernels)
    return "the " + kernels + " of a step take " + rounded(1e3 * busy_ms / gpu.kernels, 1) + " us on average";
  auto const reached = std::max(gpu.product_ms, gpu.memory_ms) / busy_ms;
  return "of their " + rounded(busy_ms, 2) + " ms, matrix products would take " + rounded(gpu.product_ms, 2) +
         " ms at the GPU's peak rate, and memory accesses about " + rounded(gpu.memory_ms, 2) + " ms" +
         (reached < 0.3 ? "; most kernels reach neither limit, and --trace shows the layers that they belong to" : "");
}

LOCKSTEP_INLINE char const* remedy_of(DeviceLimit limit, StepProfile const& profile) noexcept {
  switch (limit) {
    case DeviceLimit::launches:
      if (profile.gpu.replayed > 0.9) return "a larger --batch-size makes fewer and longer steps";
      return "batches with fewer different shapes are replayed as CUDA graphs, and a larger --batch-size has longer "
             "kernels";
    case DeviceLimit::small_kernels:
      return "a larger --batch-size has larger kernels, which use more of the GPU";
    case DeviceLimit::memory:
      return "--precision bf16 halves the bytes of activations";
    case DeviceLimit::arithmetic:
      return "--precision bf16 uses the GPU's tensor cores; beyond that, more GPUs or a smaller model would make it "
             "faster";
    case DeviceLimit::unknown:
      break;
  }
  return "more devices, or a smaller model, would make it faster";
}

}}}  // namespace lockstep::scaling::detail
