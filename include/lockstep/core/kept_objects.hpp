// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Holds at most one object of each type per owner, made at the first request. Destroys objects in reverse order. Not
/// thread-safe.
class KeptObjects {
 public:
  KeptObjects() = default;
  KeptObjects(KeptObjects&&) = default;
  KeptObjects& operator=(KeptObjects&& other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~KeptObjects() {
    while (!kept_.empty()) kept_.pop_back();
  }

  /// Returns the owner's object of type T. The owner is a unique address, or null for one object shared by all callers.
  template <class T>
  [[nodiscard]] T& of(void const* owner) {
    void (*const destroy)(void*) = [](void* object) { delete static_cast<T*>(object); };  // also identifies the type
    for (auto& [whose, object] : kept_)
      if (whose == owner && object.get_deleter() == destroy) return *static_cast<T*>(object.get());
    kept_.push_back({owner, {new T, destroy}});
    return *static_cast<T*>(kept_.back().object.get());
  }

 private:
  struct Kept {
    void const* owner;
    std::unique_ptr<void, void (*)(void*)> object;
  };
  std::vector<Kept> kept_;
};

}}  // namespace lockstep
