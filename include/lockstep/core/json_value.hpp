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
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
/// Members in the order of the text, with unique names.
using Object = std::vector<Member>;

/// One JSON value. Numbers without fraction and exponent are std::int64_t, all others double; neither is rounded to the
/// other. Values are equal if type, value and order are equal.
class Value {
 public:
  Value(std::nullptr_t = nullptr) noexcept {}
  template <std::same_as<bool> Integer>
  Value(Integer value) noexcept
      : type_(Type::boolean), integer_(value) {}  // a template, otherwise pointers would convert
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer value) : type_(Type::integer), integer_(checked(value)) {}
  Value(double value) noexcept : type_(Type::number), number_(value) {}
  Value(char const* value) : Value(std::string(value)) {}
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(std::string value) noexcept : type_(Type::string), string_(std::move(value)) {}
  Value(Array value) noexcept;
  Value(Object value) noexcept;

  /// Returns the type in words: "null", "bool", "integer", "number", "string", "array" or "object".
  [[nodiscard]] char const* type() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return type_ == Type::null; }
  template <class Integer>
  [[nodiscard]] bool is() const noexcept {
    return type_ == type_of(static_cast<Integer const*>(nullptr));
  }

  /// Return the value as the named type. An integer can also be read as a number.
  /// @throws DataError if the value has another type; names both
  [[nodiscard]] bool boolean() const { return need(Type::boolean, "a bool"), integer_ != 0; }
  [[nodiscard]] std::int64_t integer() const { return need(Type::integer, "an integer"), integer_; }
  [[nodiscard]] double number() const;
  [[nodiscard]] std::string const& string() const { return need(Type::string, "a string"), string_; }
  [[nodiscard]] Array const& array() const { return need(Type::array, "an array"), array_; }
  [[nodiscard]] Object const& object() const { return need(Type::object, "an object"), object_; }

  /// Returns the member of that name, or null if there is none.
  /// @throws DataError if this is no object
  [[nodiscard]] Value const* find(std::string_view name) const;
  /// Returns the member of that name.
  /// @throws DataError if there is none, naming the nearest, or if this is no object
  [[nodiscard]] Value const& at(std::string_view name) const;
  /// Returns the element at an index.
  /// @throws DataError if the array is shorter, or if this is no array
  [[nodiscard]] Value const& at(std::size_t index) const;

  /// Returns the heap memory of this value and all its elements, in bytes.
  [[nodiscard]] std::size_t heap_bytes() const noexcept;

  friend bool operator==(Value const& a, Value const& b);

 private:
  enum class Type : unsigned char { null, boolean, integer, number, string, array, object };
  static constexpr Type type_of(bool const*) noexcept { return Type::boolean; }
  static constexpr Type type_of(std::int64_t const*) noexcept { return Type::integer; }
  static constexpr Type type_of(double const*) noexcept { return Type::number; }
  static constexpr Type type_of(std::string const*) noexcept { return Type::string; }
  static constexpr Type type_of(Array const*) noexcept { return Type::array; }
  static constexpr Type type_of(Object const*) noexcept { return Type::object; }

  template <std::integral Integer>
  static std::int64_t checked(Integer value) {
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) == sizeof(std::int64_t)) {
      if (value > static_cast<Integer>(std::numeric_limits<std::int64_t>::max()))
        throw DataError(
            "json: " + std::to_string(value) +
            " does not fit in a signed 64-bit integer, the largest integer of these JSON files; store it as a string");
    }
    return static_cast<std::int64_t>(value);
  }
  void need(Type type, char const* wanted) const;

  // One member per type: a std::variant of them would be very expensive to compile.
  Type type_ = Type::null;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string string_;
  Array array_;
  Object object_;
};

inline Value::Value(Array value) noexcept : type_(Type::array), array_(std::move(value)) {}
inline Value::Value(Object value) noexcept : type_(Type::object), object_(std::move(value)) {}

bool operator==(Value const& a, Value const& b);

}}}  // namespace lockstep::json

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/json_value.ipp>
#endif
