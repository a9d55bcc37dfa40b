// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>

namespace lockstep::inline LOCKSTEP_ABI::json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
/// Members in the order of the text; no two have the same name.
using Object = std::vector<Member>;

/// One JSON value. Numbers without fraction and exponent are std::int64_t, all others double: neither is rounded to the
/// other. Equal means equal in type, value and order.
class Value {
 public:
  Value(std::nullptr_t = nullptr) noexcept {}
  template <std::same_as<bool> T>
  Value(T value) noexcept : data_(value) {}  // a template, or pointers would convert
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T value) : data_(checked(value)) {}
  Value(double value) noexcept : data_(value) {}
  Value(char const* value) : data_(std::string(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(std::string value) noexcept : data_(std::move(value)) {}
  Value(Array value) noexcept;
  Value(Object value) noexcept;

  /// What the value is, in words: "null", "bool", "integer", "number", "string", "array" or "object".
  [[nodiscard]] char const* type() const noexcept {
    constexpr char const* names[] = {"null", "bool", "integer", "number", "string", "array", "object"};
    return names[data_.index()];
  }
  [[nodiscard]] bool is_null() const noexcept { return data_.index() == 0; }
  template <class T>
  [[nodiscard]] bool is() const noexcept {
    return std::holds_alternative<T>(data_);
  }

  /// The value as what it is. An integer may be read as a number.
  /// @throws DataError when it is something else; names both
  [[nodiscard]] bool boolean() const { return get<bool>("a bool"); }
  [[nodiscard]] std::int64_t integer() const { return get<std::int64_t>("an integer"); }
  [[nodiscard]] double number() const {
    if (auto const* integer = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*integer);
    return get<double>("a number");
  }
  [[nodiscard]] std::string const& string() const { return get<std::string>("a string"); }
  [[nodiscard]] Array const& array() const { return get<Array>("an array"); }
  [[nodiscard]] Object const& object() const { return get<Object>("an object"); }

  /// The member of that name, or null where there is none.
  /// @throws DataError when this is no object
  [[nodiscard]] Value const* find(std::string_view name) const;
  /// The member of that name.
  /// @throws DataError when there is none, with the nearest, or when this is no object
  [[nodiscard]] Value const& at(std::string_view name) const;
  /// The element at that place.
  /// @throws DataError when there are fewer, or when this is no array
  [[nodiscard]] Value const& at(std::size_t index) const;

  friend bool operator==(Value const& a, Value const& b) { return a.data_ == b.data_; }

 private:
  template <std::integral T>
  static std::int64_t checked(T value) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t)) {
      if (value > static_cast<T>(std::numeric_limits<std::int64_t>::max()))
        throw DataError(
            "json: " + std::to_string(value) +
            " does not fit in a signed 64-bit integer, the largest that JSON files of ours hold; store text");
    }
    return static_cast<std::int64_t>(value);
  }
  template <class T>
  T const& get(char const* wanted) const {
    if (auto const* value = std::get_if<T>(&data_)) return *value;
    throw DataError(std::string("json: ") + wanted + " is needed where there is " + type());
  }

  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> data_;
};

inline Value::Value(Array value) noexcept : data_(std::move(value)) {}
inline Value::Value(Object value) noexcept : data_(std::move(value)) {}

inline Value const* Value::find(std::string_view name) const {
  for (auto const& member : object())
    if (member.first == name) return &member.second;
  return nullptr;
}

inline Value const& Value::at(std::string_view name) const {
  if (auto const* value = find(name)) return *value;
  std::vector<std::string_view> names;
  for (auto const& member : object()) names.push_back(member.first);
  throw DataError("json: there is no member \"" + std::string(name) + "\"" +
                  (names.empty() ? "; the object is empty" : "; the nearest is \"" + nearest(name, names) + "\""));
}

inline Value const& Value::at(std::size_t index) const {
  if (index < array().size()) return array()[index];
  throw DataError("json: there is no element " + std::to_string(index) + " in an array of " +
                  std::to_string(array().size()));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::json
