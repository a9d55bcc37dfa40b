// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// A fixed number of zeroed elements in one space. Movable, not copyable.
template <class Value, class Space = HostSpace>
class Buffer {
  static_assert(std::is_trivially_copyable_v<Value>, "Lockstep: a Buffer holds plain elements only");

 public:
  Buffer() = default;
  /// @throws ShapeError for a size that is negative or too large for memory; the resource's exception, usually
  /// std::bad_alloc
  template <MemoryResource Resource>
  Buffer(Index size, Resource&& resource) : block_(resource.allocate(bytes(size))), size_(size) {}
  /// Allocates host memory for `size` elements.
  explicit Buffer(Index size) requires std::is_same_v<Space, HostSpace> : Buffer(size, HostResource{}) {}

  /// Returns the first element.
  [[nodiscard]] Value* data() const noexcept { return reinterpret_cast<Value*>(block_.data()); }
  /// Returns the number of elements.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Returns all elements.
  [[nodiscard]] std::span<Value> span() const noexcept requires(Space::host_accessible) {
    return {data(), static_cast<std::size_t>(size_)};
  }
  /// Returns element i of [0, size()).
  [[nodiscard]] Value& operator[](Index i) const noexcept requires(Space::host_accessible) { return data()[i]; }

 private:
  static std::size_t bytes(Index size) {
    expect<ShapeError>(size >= 0 && size <= std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(Value)), [&] {
      return "Buffer: " + std::to_string(size) + " elements of " + std::to_string(sizeof(Value)) +
             " bytes; the size must not be negative and must fit in memory";
    });
    return static_cast<std::size_t>(size) * sizeof(Value);
  }

  Block block_;
  Index size_ = 0;
};

}}}  // namespace lockstep::memory
