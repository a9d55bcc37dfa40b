// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

template <class Value>
[[nodiscard]] std::string range_sentence(Value least, Value most) {
  std::string kind = std::is_integral_v<Value> ? "a whole number" : "a number";
  if (most == std::numeric_limits<Value>::max()) return kind + " of " + shortest(least) + " or more";
  return kind + " from " + shortest(least) + " to " + shortest(most);
}

/// Reads all of `text` as a number in [least, most]. The error message ends in `alternative`.
/// @throws ConfigError with the flag, the string and the range; also for nan, infinity and trailing characters
template <class Value>
[[nodiscard]] Value parse_number(std::string_view flag, std::string_view text, Value least, Value most,
                                 std::string_view alternative = "") {
  Value value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool valid = error == std::errc{} && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Value>) valid = valid && std::isfinite(value);
  if (!valid || value < least || value > most)
    throw ConfigError(std::string(flag) + " " + (text.empty() ? "''" : std::string(text)) + ": must be " +
                      range_sentence(least, most) + std::string(alternative) +
                      (std::is_floating_point_v<Value> && text.find(',') != std::string_view::npos
                           ? "; write a decimal point, not a comma"
                           : ""));
  return value;
}

/// Reads numbers that are separated by commas.
template <class Value>
[[nodiscard]] std::vector<Value> parse_numbers(std::string_view flag, std::string_view text, Value least, Value most) {
  std::vector<Value> all;
  for (std::size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(',', at), text.size());
    all.push_back(parse_number<Value>(flag, text.substr(at, end - at), least, most));
  }
  return all;
}

}}}  // namespace lockstep::app::detail
