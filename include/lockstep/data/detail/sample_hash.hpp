// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/detail/content_hash.hpp>
#include <lockstep/data/sample_extent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Types whose every byte is part of their value: numbers, and arrays of numbers. Excludes long double, which has
/// unused bytes, and pointers, which differ between runs.
template <class Value>
inline constexpr bool plain_bytes = std::is_enum_v<Value> ||
                                    (std::is_arithmetic_v<Value> && !std::is_same_v<Value, long double>);
template <class Value, std::size_t Count>
inline constexpr bool plain_bytes<std::array<Value, Count>> = plain_bytes<Value>;

template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

/// Excludes aggregates inside containers, because their members may not be listable.
template <class Value>
consteval bool has_plain_content() {
  if constexpr (plain_bytes<Value> || std::is_same_v<Value, std::string>) {
    return true;
  } else if constexpr (variable_length<Value> || is_optional<Value> || standard_array<Value>) {
    return has_plain_content<typename Value::value_type>();
  } else {
    return false;
  }
}
template <class Value>
consteval bool has_content();
template <class... Member>
consteval bool all_have_content(std::tuple<Member&...>*) {
  return (has_content<Member>() && ...);
}
template <class Value>
consteval bool has_content() {
  if constexpr (has_plain_content<Value>()) {
    return true;
  } else if constexpr (Aggregate<Value>) {
    if constexpr (member_count<Value> >= 1 && member_count<Value> <= max_members) {
      return all_have_content(static_cast<MembersOf<Value>*>(nullptr));
    } else {
      return false;
    }
  } else {
    return false;
  }
}

/// A value whose bytes hash_on can read completely.
template <class Value>
concept HasContent = has_content<Value>();

/// Returns a hash that changes with any byte of a value, with its lengths and with the previous hash.
template <class Value>
std::uint64_t hash_on(std::uint64_t hash, Value const& value) noexcept {
  auto const add = [&](void const* first, std::size_t bytes) {
    hash = mix(hash, content_hash({static_cast<char const*>(first), bytes}));
  };
  if constexpr (plain_bytes<Value>) {
    add(&value, sizeof value);
  } else if constexpr (is_optional<Value>) {
    hash = mix(hash, value.has_value());
    if (value) hash = hash_on(hash, *value);
  } else if constexpr (variable_length<Value> || standard_array<Value>) {
    using Element = typename Value::value_type;
    if constexpr (plain_bytes<Element> && !std::is_same_v<Value, std::vector<bool>>) {
      add(value.data(), value.size() * sizeof(Element));
    } else {
      hash = mix(hash, value.size());
      for (Element const& each : value) hash = hash_on(hash, each);
    }
  } else {
    std::apply([&](auto const&... member) { ((hash = hash_on(hash, member)), ...); }, members(value));
  }
  return hash;
}

/// Returns a hash that changes with the integers, strings and lengths of a value, and with the previous hash.
template <class Value>
std::uint64_t hash_labels_on(std::uint64_t hash, Value const& value) noexcept {
  if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value> || std::is_same_v<Value, std::string>) {
    return hash_on(hash, value);
  } else if constexpr (is_optional<Value>) {
    hash = mix(hash, value.has_value());
    return value ? hash_labels_on(hash, *value) : hash;
  } else if constexpr (variable_length<Value>) {
    return mix(hash, value.size());
  } else if constexpr (Aggregate<Value> && !standard_array<Value>) {
    std::apply([&](auto const&... member) { ((hash = hash_labels_on(hash, member)), ...); }, members(value));
  }
  return hash;
}

}}}  // namespace lockstep::data::detail
