// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/json_value.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/core/utf8.hpp>

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
  /// @param layout whether lines are indented
  explicit Writer(Layout layout = Layout::compact);

  Writer& begin_object() { return open('{'); }  ///< begins an object
  Writer& end_object() { return close('}'); }   ///< ends it
  Writer& begin_array() { return open('['); }   ///< begins an array
  Writer& end_array() { return close(']'); }    ///< ends it

  /// Names the next value as a member.
  Writer& key(std::string_view name);

  /// Writes null.
  Writer& value(std::nullptr_t) { return plain("null"); }
  /// Writes true or false.
  template <std::same_as<bool> Boolean>
  Writer& value(Boolean value) {
    return plain(value ? "true" : "false");
  }
  /// Writes an integer.   @throws DataError for an unsigned value above the largest std::int64_t
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Writer& value(Integer value) {
    return plain(std::to_string(Value(value).integer()));
  }
  /// Writes a floating-point number.   @throws DataError for nan and infinity
  template <std::floating_point Number>
  Writer& value(Number value) {
    if (!std::isfinite(value))
      throw DataError("json: " + where() + " is " + (std::isnan(value) ? "nan" : "infinite") +
                      ", which JSON cannot hold; leave it out or write null");
    auto number = shortest(value);
    if (number.find_first_of(".e") == std::string::npos) number += ".0";
    return plain(number);
  }
  /// Writes the value, or null for nan and infinity.
  Writer& value_or_null(double value) { return std::isfinite(value) ? this->value(value) : plain("null"); }
  /// Writes a string, with escapes.
  Writer& value(std::string_view value);
  /// Writes a string, with escapes.
  Writer& value(char const* value) { return this->value(std::string_view(value)); }
  /// Writes a string, with escapes.
  Writer& value(std::string const& value) { return this->value(std::string_view(value)); }
  /// Writes a value with all that it contains.
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

  /// Writes a name and its value, of any type that `value` accepts.   @throws DataError, Error as `value` does
  template <class Content>
  Writer& member(std::string_view name, Content const& value) {
    return key(name).value(value);
  }

  /// Returns the whole text. With Layout::indented it ends with a new line.
  /// @throws Error while an object or an array is open, or if nothing has been written
  [[nodiscard]] std::string const& text() const;
  /// Restarts with an empty text; keeps the storage.
  void clear() noexcept;

 private:
  struct Level {
    char closing;
    std::vector<std::string> names;
    NameTable known;
    bool empty = true;
    bool broken = false;  // over several lines
  };

  Writer& open(char opening);

  Writer& close(char closing);

  Writer& plain(std::string_view text);

  void before_value(bool on_own_line = false);

  Writer& after_value();

  void separate(bool broken);
  void new_line();

  void quote(std::string_view string);

  /// Returns the path to the current value, for messages: `"final"."train_loss"`.
  std::string where() const;

  Layout layout_;
  std::string text_;
  std::vector<Level> levels_;
  bool named_ = false;  // a name is written and its value is not
  bool done_ = false;
};

}}}  // namespace lockstep::json

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/json_writer.ipp>
#endif
