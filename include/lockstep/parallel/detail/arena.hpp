// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include <lockstep/memory/buffer.hpp>
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Numbers that a device keeps, and the host's view of them.
template <class Space>
class Arena {
 public:
  explicit Arena(Index size) : memory_(size, memory::DefaultResource<Space>{}) {}

  [[nodiscard]] float* data() const noexcept { return memory_.data(); }
  /// The numbers themselves or, of a device, a copy that the next call overwrites. Waits for the device.
  [[nodiscard]] std::span<float> on_host(Device<Space> const& device) const {
    if constexpr (Space::host_accessible) {
      return memory_.span();
    } else {
      if (copy_.size() != memory_.size()) copy_ = memory::Buffer<float>(memory_.size());
      device.read(memory_.data(), copy_.span());
      return copy_.span();
    }
  }

 private:
  memory::Buffer<float, Space> memory_;
  mutable memory::Buffer<float> copy_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
