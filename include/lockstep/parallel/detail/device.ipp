// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

LOCKSTEP_COLD_INLINE Device<HostSpace>::Device(Place const& place)
    : pool_(std::make_unique<ThreadPool>(place.threads)) {}

LOCKSTEP_INLINE void Device<HostSpace>::write(std::span<float const> from, float* to) const {
  if (from.data() != to) std::copy(from.begin(), from.end(), to);
}

}}}  // namespace lockstep::parallel::detail
