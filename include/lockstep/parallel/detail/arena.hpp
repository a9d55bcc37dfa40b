// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include <lockstep/memory/block.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Array of floats in a device's memory, readable on the host.
template <class Space>
class Arena {
 public:
  /// @param block `size` zeroed floats of the space; allocated here if it is empty
  explicit Arena(Index size, memory::Block block = {})
      : block_(block.data()
                   ? std::move(block)
                   : memory::DefaultResource<Space>{}.allocate(static_cast<std::size_t>(size) * sizeof(float))),
        size_(size) {}

  /// Replaces the memory if it has fewer than `size` floats. Its contents are lost.
  void reserve(Index size) {
    if (size > size_) *this = Arena(size);
  }
  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] float* data() const noexcept { return reinterpret_cast<float*>(block_.data()); }
  /// Returns the floats. For a device this is a copy that the next call overwrites. Waits for the device.
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

}}}  // namespace lockstep::parallel::detail
