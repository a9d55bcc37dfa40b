// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Element type of memory whose C++ type is erased.
enum class ElementType : std::uint32_t {
  float32,   ///< float
  float64,   ///< double
  bfloat16,  ///< bfloat16
  float16,   ///< float16
  int32,     ///< signed, 32 bits
  int64,     ///< signed, 64 bits
  uint8,     ///< unsigned char
};

namespace detail {
template <class Value>
[[nodiscard]] constexpr ElementType element_type() noexcept {
  if constexpr (std::is_same_v<Value, float>) return ElementType::float32;
  if constexpr (std::is_same_v<Value, double>) return ElementType::float64;
  if constexpr (std::is_same_v<Value, bfloat16>) return ElementType::bfloat16;
  if constexpr (std::is_same_v<Value, float16>) return ElementType::float16;
  if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value> && sizeof(Value) == 4) return ElementType::int32;
  if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value> && sizeof(Value) == 8) return ElementType::int64;
  return ElementType::uint8;
}
}  // namespace detail

/// The ElementType of `float`, `double`, `bfloat16`, `float16`, signed integers of 32 or 64 bits, and `unsigned char`.
template <class Value>
inline constexpr ElementType element_type_of = [] {
  static_assert(detail::element_type<Value>() != ElementType::uint8 || std::is_same_v<Value, unsigned char>,
                "Lockstep: elements are float, double, bfloat16, float16, int32_t, int64_t or unsigned char");
  return detail::element_type<Value>();
}();

/// Returns the size of an element in bytes.
[[nodiscard]] constexpr std::size_t size_of(ElementType type) noexcept {
  return std::array<std::size_t, 7>{4, 8, 2, 2, 4, 8, 1}[static_cast<std::size_t>(type)];
}

/// Returns "float32", for messages and records.
[[nodiscard]] constexpr char const* name(ElementType type) noexcept {
  return std::array<char const*, 7>{
      "float32", "float64", "bfloat16", "float16", "int32", "int64", "uint8"}[static_cast<std::size_t>(type)];
}

}}  // namespace lockstep
