// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include <lockstep/memory/block.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// A host-memory resource chosen at run time: ordinary memory, or page-locked memory for data that goes to a device.
/// Accepts any small trivially copyable resource. Two are equal if their type and state are equal.
class AnyHostResource {
 public:
  /// Refers to ordinary memory: HostResource.
  AnyHostResource() noexcept : AnyHostResource(HostResource{}) {}
  /// Copies a resource, which must be trivially copyable and no larger than a pointer.
  template <MemoryResource Resource>
  AnyHostResource(Resource resource) noexcept  // NOLINT(google-explicit-constructor): accepts any resource
      : allocate_([](std::uintptr_t state, std::size_t bytes) {
          return std::launder(reinterpret_cast<Resource const*>(&state))->allocate(bytes);
        }) {
    static_assert(std::is_trivially_copyable_v<Resource> && sizeof(Resource) <= sizeof state_,
                  "Lockstep: AnyHostResource takes resources that are plain and no larger than a pointer");
    if constexpr (!std::is_empty_v<Resource>) new (&state_) Resource(resource);
  }

  /// Returns memory of the resource.   @throws the resource's exceptions
  [[nodiscard]] Block allocate(std::size_t bytes) const { return allocate_(state_, bytes); }
  /// Compares what both refer to.
  bool operator==(AnyHostResource const&) const = default;

 private:
  Block (*allocate_)(std::uintptr_t state, std::size_t bytes);
  std::uintptr_t state_ = 0;
};
static_assert(MemoryResource<AnyHostResource>);

}}}  // namespace lockstep::memory
