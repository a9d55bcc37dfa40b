// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Limit of the forward and backward on a GPU.
enum class DeviceLimit {
  unknown,        ///< a CPU, or nothing was measured
  launches,       ///< the GPU waits for the host
  small_kernels,  ///< kernels are too short to use the whole GPU
  memory,         ///< device memory
  arithmetic,     ///< matrix products
};

/// A mean kernel below this is small: starting and draining a kernel takes a few microseconds.
inline constexpr double small_kernel_ms = 0.010;

/// Returns the milliseconds of an average step in which a GPU does nothing, as far as the host is the cause.
[[nodiscard]] double idle_ms(StepProfile const& profile) noexcept;

/// Returns the limit of a GPU whose forward and backward take most of a step.
[[nodiscard]] DeviceLimit device_limit(StepProfile const& profile) noexcept;

/// Returns the limit as Bottleneck::bound.
[[nodiscard]] char const* name_of(DeviceLimit limit) noexcept;

/// Returns the measurements behind a limit, as the middle of a sentence.
[[nodiscard]] std::string reason_of(DeviceLimit limit, StepProfile const& profile);

/// Returns the remedy for a limit.
[[nodiscard]] char const* remedy_of(DeviceLimit limit, StepProfile const& profile) noexcept;

}}}  // namespace lockstep::scaling::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/detail/device_limit.ipp>
#endif
