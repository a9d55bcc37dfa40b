// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn::detail {

/// Objects of any type, one of each for an owner.
class KeptObjects {
 public:
  /// Made at the first call.
  template <class T>
  [[nodiscard]] T& of(void const* owner) {
    void (*const destroy)(void*) = [](void* object) { delete static_cast<T*>(object); };
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

}  // namespace lockstep::inline LOCKSTEP_ABI::nn::detail
