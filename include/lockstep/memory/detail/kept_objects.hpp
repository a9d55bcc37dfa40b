// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::memory::detail {

/// At most one object of each type, made when it is first asked for. Destroyed in reverse order. Not thread-safe.
class KeptObjects {
 public:
  KeptObjects() = default;
  KeptObjects(KeptObjects const&) = delete;
  KeptObjects& operator=(KeptObjects const&) = delete;
  ~KeptObjects() {
    while (!objects_.empty()) objects_.pop_back();
  }

  template <class T>
  [[nodiscard]] T& get() {
    void (*const destroy)(void*) = [](void* object) { delete static_cast<T*>(object); };  // also names the type
    for (auto& object : objects_)
      if (object.get_deleter() == destroy) return *static_cast<T*>(object.get());
    objects_.push_back({new T, destroy});
    return *static_cast<T*>(objects_.back().get());
  }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> objects_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory::detail
