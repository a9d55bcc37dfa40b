// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// At most one object of each type for an owner, made when it is first asked for. Destroyed in reverse order. Not
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

  /// An owner is an address that is its own; null, where one object of the type will do for all.
  template <class T>
  [[nodiscard]] T& of(void const* owner) {
    void (*const destroy)(void*) = [](void* object) { delete static_cast<T*>(object); };  // also names the type
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

}  // namespace lockstep::inline LOCKSTEP_ABI
