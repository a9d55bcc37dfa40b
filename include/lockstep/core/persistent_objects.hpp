// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Holds at most one object of each type per owner, made at the first request. Destroys objects in reverse order. Not
/// thread-safe.
class PersistentObjects {
 public:
  PersistentObjects() = default;
  /// Takes over the objects.
  PersistentObjects(PersistentObjects&&) = default;
  /// Exchanges the objects of both.
  PersistentObjects& operator=(PersistentObjects&& other) noexcept {
    std::swap(objects_, other.objects_);
    return *this;
  }
  ~PersistentObjects() {
    while (!objects_.empty()) objects_.pop_back();
  }

  /// Returns the owner's object of type Value. The owner is a unique address, or null for one object shared by all
  /// callers.
  template <class Value>
  [[nodiscard]] Value& of(void const* owner) {
    void (*const destroy)(void*) = [](void* object) {
      delete static_cast<Value*>(object);
    };  // also identifies the type
    for (auto& [whose, object] : objects_)
      if (whose == owner && object.get_deleter() == destroy) return *static_cast<Value*>(object.get());
    objects_.push_back({owner, {new Value, destroy}});
    return *static_cast<Value*>(objects_.back().object.get());
  }

 private:
  struct Entry {
    void const* owner;
    std::unique_ptr<void, void (*)(void*)> object;
  };
  std::vector<Entry> objects_;
};

}}  // namespace lockstep
