// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/json_value.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

LOCKSTEP_INLINE char const* Value::type() const noexcept {
  constexpr char const* names[] = {"null", "bool", "integer", "number", "string", "array", "object"};
  return names[static_cast<int>(type_)];
}

LOCKSTEP_INLINE double Value::number() const {
  if (type_ == Type::integer) return static_cast<double>(integer_);
  return need(Type::number, "a number"), number_;
}

LOCKSTEP_INLINE void Value::need(Type type, char const* wanted) const {
  if (type_ != type) throw DataError(std::string("json: ") + wanted + " is needed, not " + this->type());
}

LOCKSTEP_INLINE bool operator==(Value const& a, Value const& b) {
  return a.type_ == b.type_ && a.integer_ == b.integer_ && a.number_ == b.number_ && a.string_ == b.string_ &&
         a.array_ == b.array_ && a.object_ == b.object_;
}

LOCKSTEP_INLINE std::size_t Value::heap_bytes() const noexcept {
  auto out = string_.capacity() + array_.capacity() * sizeof(Value) + object_.capacity() * sizeof(Member);
  for (auto const& each : array_) out += each.heap_bytes();
  for (auto const& [name, value] : object_) out += name.capacity() + value.heap_bytes();
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
