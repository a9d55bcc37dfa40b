// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// The type of the elements of memory whose C++ type has been erased.
enum class ElementType : std::uint32_t { float32, float64 };

/// The ElementType of `float` or `double`.
template <class T>
inline constexpr ElementType element_type_of = [] {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "Lockstep: elements are float or double");
  return std::is_same_v<T, float> ? ElementType::float32 : ElementType::float64;
}();

[[nodiscard]] constexpr std::size_t size_of(ElementType type) noexcept { return type == ElementType::float32 ? 4 : 8; }

/// "float32", for messages and records.
[[nodiscard]] constexpr char const* name(ElementType type) noexcept {
  return type == ElementType::float32 ? "float32" : "float64";
}

}  // namespace lockstep::inline LOCKSTEP_ABI
