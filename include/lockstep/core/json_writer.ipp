// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/json_writer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

LOCKSTEP_INLINE Writer& Writer::key(std::string_view name) {
  if (levels_.empty() || levels_.back().closing != '}' || named_)
    throw Error("json::Writer: the name \"" + std::string(name) +
                "\" is out of place; names belong to objects, one a value");
  auto& level = levels_.back();
  level.names.emplace_back(name);
  if (level.known.add([&](std::size_t i) -> std::string_view { return level.names[i]; }) != NameTable::none)
    throw Error("json::Writer: the member \"" + std::string(name) + "\" is written twice");
  separate(true);
  quote(name);
  text_ += layout_ == Layout::compact ? ":" : ": ";
  named_ = true;
  return *this;
}

LOCKSTEP_INLINE Writer& Writer::value(std::string_view value) {
  before_value();
  quote(value);
  return after_value();
}

LOCKSTEP_INLINE std::string const& Writer::text() const {
  if (!done_)
    throw Error("json::Writer: the text is not complete: " +
                (levels_.empty() ? "nothing was written" : where() + " is open"));
  return text_;
}

LOCKSTEP_INLINE void Writer::clear() noexcept {
  text_.clear();
  levels_.clear();
  named_ = done_ = false;
}

LOCKSTEP_INLINE Writer& Writer::open(char opening) {
  before_value(opening == '{');
  text_ += opening;
  levels_.push_back({opening == '{' ? '}' : ']', {}, {}, true, false});
  return *this;
}

LOCKSTEP_INLINE Writer& Writer::close(char closing) {
  if (levels_.empty() || levels_.back().closing != closing || named_)
    throw Error(std::string("json::Writer: '") + closing + "' closes nothing that is open");
  auto const level = std::move(levels_.back());
  levels_.pop_back();
  if (level.broken) new_line();
  text_ += closing;
  return after_value();
}

LOCKSTEP_INLINE Writer& Writer::plain(std::string_view text) {
  before_value();
  text_ += text;
  return after_value();
}

LOCKSTEP_INLINE void Writer::before_value(bool on_own_line) {
  if (done_) throw Error("json::Writer: the text is complete; only one value fits");
  if (levels_.empty()) return;
  if (levels_.back().closing == ']') return separate(on_own_line);
  if (!named_) throw Error("json::Writer: a value in an object needs a name; call key first");
  named_ = false;
}

LOCKSTEP_INLINE Writer& Writer::after_value() {
  done_ = levels_.empty();
  if (done_ && layout_ == Layout::indented) text_ += '\n';
  return *this;
}

LOCKSTEP_INLINE void Writer::separate(bool broken) {
  auto& level = levels_.back();
  if (!level.empty) text_ += layout_ == Layout::indented && !broken ? ", " : ",";
  level.empty = false;
  if (!broken || layout_ == Layout::compact) return;
  level.broken = true;
  new_line();
}

LOCKSTEP_INLINE void Writer::quote(std::string_view string) {
  constexpr char digits[] = "0123456789abcdef";
  text_ += '"';
  while (!string.empty()) {
    auto const length = utf8_length(string);
    auto const c = static_cast<unsigned char>(string[0]);
    constexpr std::string_view special = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";  // U+FFFD
    } else if (auto const at = special.find(string[0]); length == 1 && at != std::string_view::npos) {
      text_ += '\\';
      text_ += letters[at];
    } else if (c < 0x20) {
      ((text_ += "\\u00") += digits[c >> 4]) += digits[c & 15];
    } else {
      text_ += string.substr(0, length);
    }
    string.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

LOCKSTEP_INLINE std::string Writer::where() const {
  std::string out;
  for (auto const& level : levels_)
    if (!level.names.empty()) out += (out.empty() ? "\"" : ".\"") + level.names.back() + "\"";
  return out.empty() ? "the value" : out;
}

LOCKSTEP_INLINE Writer& Writer::value(Value const& value) {
  if (value.is<Object>()) {
    begin_object();
    for (auto const& [name, element] : value.object()) member(name, element);
    return end_object();
  }
  if (value.is<Array>()) {
    begin_array();
    for (auto const& element : value.array()) this->value(element);
    return end_array();
  }
  if (value.is<std::string>()) return this->value(value.string());
  if (value.is<double>()) return this->value(value.number());
  if (value.is<std::int64_t>()) return this->value(value.integer());
  if (value.is<bool>()) return this->value(value.boolean());
  return this->value(nullptr);
}

LOCKSTEP_INLINE Writer::Writer(Layout layout) : layout_(layout) {}

LOCKSTEP_INLINE void Writer::new_line() { text_.append(1, '\n').append(2 * levels_.size(), ' '); }

}}}  // namespace lockstep::json
