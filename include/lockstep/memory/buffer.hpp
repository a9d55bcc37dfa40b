// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep::inline LOCKSTEP_ABI::memory {

/// A fixed number of zeroed elements in one space. Moves, does not copy.
template <class T, class Space = HostSpace>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "Lockstep: a Buffer holds plain elements only");

 public:
  Buffer() = default;
  template <MemoryResource Resource>
  Buffer(Index size, Resource& resource)
      : block_(resource.allocate(static_cast<std::size_t>(size) * sizeof(T))), size_(size) {}
  explicit Buffer(Index size)
    requires std::is_same_v<Space, HostSpace>
      : block_(HostResource{}.allocate(static_cast<std::size_t>(size) * sizeof(T))), size_(size) {}

  [[nodiscard]] T* data() const noexcept { return reinterpret_cast<T*>(block_.data()); }
  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] std::span<T> span() const noexcept
    requires(Space::host_accessible)
  {
    return {data(), static_cast<std::size_t>(size_)};
  }
  [[nodiscard]] T& operator[](Index i) const noexcept
    requires(Space::host_accessible)
  {
    return data()[i];
  }

 private:
  Block block_;
  Index size_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
