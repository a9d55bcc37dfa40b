// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/detail/utf8.hpp>
#include <lockstep/core/json_value.hpp>
#include <lockstep/core/name_table.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

/// Layout of a Writer's output.
enum class Layout {
  compact,   ///< on one line, for logs of one object per line
  indented,  ///< one line per member and per object in an array, for people
};

/// Writes one JSON text piece by piece. Floating-point numbers are written with the fewest digits that read back
/// bit-identical, and always look like one (1.0, not 1). Bytes that are not UTF-8 become U+FFFD.
/// @throws DataError for nan and infinity, which JSON does not support; Error for a call out of place, such as a value
/// in an object without a name. After either, call `clear` before you write again
class Writer {
 public:
  explicit Writer(Layout layout = Layout::compact) : layout_(layout) {}

  Writer& begin_object() { return open('{'); }
  Writer& end_object() { return close('}'); }
  Writer& begin_array() { return open('['); }
  Writer& end_array() { return close(']'); }

  /// Names the next value as a member.
  Writer& key(std::string_view name) {
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

  Writer& value(std::nullptr_t) { return plain("null"); }
  template <std::same_as<bool> T>
  Writer& value(T value) {
    return plain(value ? "true" : "false");
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) Writer& value(T value) { return plain(std::to_string(Value(value).integer())); }
  template <std::floating_point T>
  Writer& value(T value) {
    if (!std::isfinite(value))
      throw DataError("json: " + where() + " is " + (std::isnan(value) ? "nan" : "infinite") +
                      ", which JSON cannot hold; leave it out or write null");
    char buffer[64];
    auto const end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    std::string number(buffer, end);
    if (number.find_first_of(".e") == std::string::npos) number += ".0";
    return plain(number);
  }
  /// Writes the value, or null for nan and infinity.
  Writer& value_or_null(double value) { return std::isfinite(value) ? this->value(value) : plain("null"); }
  Writer& value(std::string_view value) {
    before_value();
    quote(value);
    return after_value();
  }
  Writer& value(char const* value) { return this->value(std::string_view(value)); }
  Writer& value(std::string const& value) { return this->value(std::string_view(value)); }
  Writer& value(Value const& value);
  /// Writes all elements of a range as an array.
  template <class Range>
  requires(requires(Range const& range) { std::begin(range) != std::end(range); } &&
           !std::convertible_to<Range const&, std::string_view> &&
           !std::same_as<Range, Object>) Writer& value(Range const& range) {
    begin_array();
    for (auto const& element : range) value(element);
    return end_array();
  }

  template <class T>
  Writer& member(std::string_view name, T const& value) {
    return key(name).value(value);
  }

  /// Returns the whole text. With Layout::indented it ends with a new line.
  /// @throws Error while an object or an array is open, or if nothing has been written
  [[nodiscard]] std::string const& text() const {
    if (!done_)
      throw Error("json::Writer: the text is not complete: " +
                  (levels_.empty() ? "nothing was written" : where() + " is open"));
    return text_;
  }
  /// Restarts with an empty text; keeps the storage.
  void clear() noexcept {
    text_.clear();
    levels_.clear();
    named_ = done_ = false;
  }

 private:
  struct Level {
    char closing;
    std::vector<std::string> names;
    NameTable known;
    bool empty = true;
    bool broken = false;  // over several lines
  };

  Writer& open(char opening) {
    before_value(opening == '{');
    text_ += opening;
    levels_.push_back({opening == '{' ? '}' : ']', {}, {}, true, false});
    return *this;
  }

  Writer& close(char closing) {
    if (levels_.empty() || levels_.back().closing != closing || named_)
      throw Error(std::string("json::Writer: '") + closing + "' closes nothing that is open");
    auto const level = std::move(levels_.back());
    levels_.pop_back();
    if (level.broken) new_line();
    text_ += closing;
    return after_value();
  }

  Writer& plain(std::string_view text) {
    before_value();
    text_ += text;
    return after_value();
  }

  void before_value(bool on_own_line = false) {
    if (done_) throw Error("json::Writer: the text is complete; only one value fits");
    if (levels_.empty()) return;
    if (levels_.back().closing == ']') return separate(on_own_line);
    if (!named_) throw Error("json::Writer: a value in an object needs a name; call key first");
    named_ = false;
  }

  Writer& after_value() {
    done_ = levels_.empty();
    if (done_ && layout_ == Layout::indented) text_ += '\n';
    return *this;
  }

  void separate(bool broken) {
    auto& level = levels_.back();
    if (!level.empty) text_ += layout_ == Layout::indented && !broken ? ", " : ",";
    level.empty = false;
    if (!broken || layout_ == Layout::compact) return;
    level.broken = true;
    new_line();
  }
  void new_line() { text_.append(1, '\n').append(2 * levels_.size(), ' '); }

  void quote(std::string_view string) {
    constexpr char digits[] = "0123456789abcdef";
    text_ += '"';
    while (!string.empty()) {
      auto const length = lockstep::detail::utf8_length(string);
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

  /// Returns the path to the current value, for messages: `"final"."train_loss"`.
  std::string where() const {
    std::string out;
    for (auto const& level : levels_)
      if (!level.names.empty()) out += (out.empty() ? "\"" : ".\"") + level.names.back() + "\"";
    return out.empty() ? "the value" : out;
  }

  Layout layout_;
  std::string text_;
  std::vector<Level> levels_;
  bool named_ = false;  // a name is written and its value is not
  bool done_ = false;
};

inline Writer& Writer::value(Value const& value) {
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

}}}  // namespace lockstep::json
