// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Holds at most one object of each type per owner, made at the first request. Destroys objects in reverse order. Not
/// thread-safe.
class PersistentObjects {
 public:
  PersistentObjects() noexcept;                     ///< holds no objects
  ~PersistentObjects();                             ///< destroys the objects
  PersistentObjects(PersistentObjects&&) noexcept;  ///< takes over the objects
  /// Exchanges the objects of both.
  PersistentObjects& operator=(PersistentObjects&& other) noexcept;

  /// Returns the owner's object of type Value. The owner is a unique address, or null for one object shared by all
  /// callers.
  template <class Value>
  [[nodiscard]] Value& of(void const* owner) {
    void (*const destroy)(void*) = [](void* object) {
      delete static_cast<Value*>(object);
    };  // also identifies the type
    return *static_cast<Value*>(of(
        owner, []() -> void* { return new Value; }, destroy));
  }

 private:
  struct Entry {
    void const* owner;
    void* object;
    void (*destroy)(void*);
  };
  /// Returns the owner's object that `destroy` deletes; makes it if there is none.
  [[nodiscard]] void* of(void const* owner, void* (*make)(), void (*destroy)(void*));

  std::vector<Entry> objects_;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/persistent_objects.ipp>
#endif
