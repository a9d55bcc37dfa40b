// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/core/persistent_objects.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE PersistentObjects::PersistentObjects() noexcept = default;

LOCKSTEP_INLINE PersistentObjects::~PersistentObjects() {
  while (!objects_.empty()) {
    auto const last = objects_.back();
    objects_.pop_back();
    last.destroy(last.object);
  }
}

LOCKSTEP_INLINE PersistentObjects::PersistentObjects(PersistentObjects&&) noexcept = default;

LOCKSTEP_INLINE PersistentObjects& PersistentObjects::operator=(PersistentObjects&& other) noexcept {
  std::swap(objects_, other.objects_);
  return *this;
}

LOCKSTEP_INLINE void* PersistentObjects::of(void const* owner, void* (*make)(), void (*destroy)(void*)) {
  for (auto const& entry : objects_)
    if (entry.owner == owner && entry.destroy == destroy) return entry.object;
  auto* const object = make();
  try {
    objects_.push_back({owner, object, destroy});
  } catch (...) {
    destroy(object);
    throw;
  }
  return object;
}

}}  // namespace lockstep
