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
using Array = std::vector<Value>;              ///< elements in order
using Member = std::pair<std::string, Value>;  ///< name and value
/// Members in the order of the text, with unique names.
using Object = std::vector<Member>;

/// One JSON value, of 16 bytes. Numbers without fraction and exponent are std::int64_t, all others double; neither is
/// rounded to the other. Values are equal if type, value and order are equal.
class Value {
 public:
  /// Makes null.
  Value(std::nullptr_t = nullptr) noexcept {}
  /// Makes a bool.
  template <std::same_as<bool> Boolean>
  Value(Boolean value) noexcept : type_(Type::boolean) {  // a template, otherwise pointers would convert
    data_.integer = value;
  }
  /// Makes an integer.   @throws DataError for an unsigned value above the largest std::int64_t
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer value) : type_(Type::integer) { data_.integer = checked(value); }
  /// Makes a number.
  Value(double value) noexcept : type_(Type::number) { data_.number = value; }
  /// Makes a string.
  Value(char const* value) : Value(std::string(value)) {}
  /// Makes a string.
  Value(std::string_view value) : Value(std::string(value)) {}
  /// Makes a string.
  Value(std::string value);
  /// Makes an array.
  Value(Array value);
  /// Makes an object.
  Value(Object value);
  /// Copies all of it.
  Value(Value const& other);
  /// Takes over the content; `other` becomes null.
  Value(Value&& other) noexcept : type_(std::exchange(other.type_, Type::null)), data_(other.data_) {}
  /// Takes over the content of `other`.
  Value& operator=(Value other) noexcept {
    std::swap(type_, other.type_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Value() {
    if (type_ >= Type::string) release();
  }

  /// Returns the type in words: "null", "bool", "integer", "number", "string", "array" or "object".
  [[nodiscard]] char const* type() const noexcept;
  /// Returns whether the value is null.
  [[nodiscard]] bool is_null() const noexcept { return type_ == Type::null; }
  /// Returns whether the value has this type: bool, std::int64_t, double, std::string, Array or Object. An integer is
  /// no double, although `number` reads it.
  template <class Content>
  [[nodiscard]] bool is() const noexcept {
    return type_ == type_of(static_cast<Content const*>(nullptr));
  }

  /// Returns the bool.   @throws DataError for another type; names both, as the functions below do
  [[nodiscard]] bool boolean() const { return need(Type::boolean, "a bool").integer != 0; }
  /// Returns the integer.   @throws DataError for another type, also for a number without a fraction such as 1.0
  [[nodiscard]] std::int64_t integer() const { return need(Type::integer, "an integer").integer; }
  /// Returns a number, or an integer as one.   @throws DataError for another type
  [[nodiscard]] double number() const;
  /// Returns the string.   @throws DataError for another type
  [[nodiscard]] std::string const& string() const { return *need(Type::string, "a string").string; }
  /// Returns the elements.   @throws DataError for another type
  [[nodiscard]] Array const& array() const { return *need(Type::array, "an array").array; }
  /// Returns the members.   @throws DataError for another type
  [[nodiscard]] Object const& object() const { return *need(Type::object, "an object").object; }

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

  /// Compares types and content.
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
  // A std::variant would be very expensive to compile. A value is small, since a file of a few bytes per value may hold
  // millions. Empty strings, arrays and objects are shared constants, which are never released.
  union Data {
    std::int64_t integer;
    double number;
    std::string const* string;
    Array const* array;
    Object const* object;
  };

  [[nodiscard]] Data const& need(Type type, char const* wanted) const;
  void release() noexcept;

  Type type_ = Type::null;
  Data data_{0};
};
static_assert(sizeof(Value) == 16);

/// Returns whether type and content are equal. An integer and a double of the same value differ.
bool operator==(Value const& a, Value const& b);

}}}  // namespace lockstep::json

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/json_value.ipp>
#endif
