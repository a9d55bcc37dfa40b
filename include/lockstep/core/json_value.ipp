// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/json_value.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

namespace detail {

/// Returns a constant that all empty values share.
template <class Content>
Content const& shared_empty() noexcept {
  static Content const empty;
  return empty;
}
/// Returns a constant that the value owns, unless it is empty.
template <class Content>
Content const* owned(Content content) {
  return content.empty() ? &shared_empty<Content>() : new Content(std::move(content));
}
template <class Content>
void release_owned(Content const* content) noexcept {
  if (content != &shared_empty<Content>()) delete content;
}

}  // namespace detail

LOCKSTEP_INLINE Value::Value(std::string value) {
  data_.string = detail::owned(std::move(value));
  type_ = Type::string;
}
LOCKSTEP_INLINE Value::Value(Array value) {
  data_.array = detail::owned(std::move(value));
  type_ = Type::array;
}
LOCKSTEP_INLINE Value::Value(Object value) {
  data_.object = detail::owned(std::move(value));
  type_ = Type::object;
}

LOCKSTEP_INLINE Value::Value(Value const& other) : data_(other.data_) {
  if (other.type_ == Type::string) data_.string = detail::owned(*other.data_.string);
  if (other.type_ == Type::array) data_.array = detail::owned(*other.data_.array);
  if (other.type_ == Type::object) data_.object = detail::owned(*other.data_.object);
  type_ = other.type_;
}

LOCKSTEP_INLINE void Value::release() noexcept {
  if (type_ == Type::string) detail::release_owned(data_.string);
  if (type_ == Type::array) detail::release_owned(data_.array);
  if (type_ == Type::object) detail::release_owned(data_.object);
}

LOCKSTEP_INLINE char const* Value::type() const noexcept {
  constexpr char const* names[] = {"null", "bool", "integer", "number", "string", "array", "object"};
  return names[static_cast<int>(type_)];
}

LOCKSTEP_INLINE double Value::number() const {
  if (type_ == Type::integer) return static_cast<double>(data_.integer);
  return need(Type::number, "a number").number;
}

LOCKSTEP_INLINE Value::Data const& Value::need(Type type, char const* wanted) const {
  if (type_ != type) throw DataError(std::string("json: ") + wanted + " is needed, not " + this->type());
  return data_;
}

LOCKSTEP_INLINE bool operator==(Value const& a, Value const& b) {
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case Value::Type::null:
      return true;
    case Value::Type::number:
      return a.data_.number == b.data_.number;
    case Value::Type::string:
      return *a.data_.string == *b.data_.string;
    case Value::Type::array:
      return *a.data_.array == *b.data_.array;
    case Value::Type::object:
      return *a.data_.object == *b.data_.object;
    default:
      return a.data_.integer == b.data_.integer;
  }
}

LOCKSTEP_INLINE std::size_t Value::heap_bytes() const noexcept {
  std::size_t out = 0;
  if (type_ == Type::string && !data_.string->empty()) out = sizeof(std::string) + data_.string->capacity();
  if (type_ == Type::array && !data_.array->empty()) {
    out = sizeof(Array) + data_.array->capacity() * sizeof(Value);
    for (auto const& each : *data_.array) out += each.heap_bytes();
  }
  if (type_ == Type::object && !data_.object->empty()) {
    out = sizeof(Object) + data_.object->capacity() * sizeof(Member);
    for (auto const& [name, value] : *data_.object) out += name.capacity() + value.heap_bytes();
  }
  return out;
}

LOCKSTEP_INLINE Value const* Value::find(std::string_view name) const {
  for (auto const& member : object())
    if (member.first == name) return &member.second;
  return nullptr;
}

LOCKSTEP_INLINE Value const& Value::at(std::string_view name) const {
  if (auto const* value = find(name)) return *value;
  std::vector<std::string_view> names;
  for (auto const& member : object()) names.push_back(member.first);
  throw DataError("json: there is no member \"" + std::string(name) + "\"" +
                  (names.empty() ? "; the object is empty" : "; the nearest is \"" + nearest(name, names) + "\""));
}

LOCKSTEP_INLINE Value const& Value::at(std::size_t index) const {
  if (index < array().size()) return array()[index];
  throw DataError("json: there is no element " + std::to_string(index) + " in an array of " +
                  std::to_string(array().size()));
}

}}}  // namespace lockstep::json
