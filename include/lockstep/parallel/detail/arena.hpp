// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include <lockstep/memory/block.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Numbers that a device keeps, and the host's view of them.
template <class Space>
class Arena {
 public:
  /// `block` holds so many zeroed floats of the space, and is made here when it is empty.
  explicit Arena(Index size, memory::Block block = {})
      : block_(block.data()
                   ? std::move(block)
                   : memory::DefaultResource<Space>{}.allocate(static_cast<std::size_t>(size) * sizeof(float))),
        size_(size) {}

  [[nodiscard]] float* data() const noexcept { return reinterpret_cast<float*>(block_.data()); }
  /// The numbers themselves or, of a device, a copy that the next call overwrites. Waits for the device.
  [[nodiscard]] std::span<float> on_host(Device<Space> const& device) const {
    if constexpr (Space::host_accessible) {
      return {data(), static_cast<std::size_t>(size_)};
    } else {
      if (copy_.size() != size_) copy_ = memory::Buffer<float>(size_);
      device.read(data(), copy_.span());
      return copy_.span();
    }
  }

 private:
  memory::Block block_;
  Index size_;
  mutable memory::Buffer<float> copy_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
