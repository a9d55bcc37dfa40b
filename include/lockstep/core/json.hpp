// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json_value.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

/// Limit for the bytes of a JSON file of Lockstep, such as run.json, when it is read.
inline constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 28;

/// Handling of half a surrogate pair in a string, such as "\\ud83d".
enum class LoneSurrogates {
  refuse,   ///< an error
  replace,  ///< read as U+FFFD
};

/// Parses one JSON text (RFC 8259) strictly: only white space around the value, no comments, no trailing commas, and
/// unique names. Strings must be UTF-8, integers must fit 64 bits and numbers a double; at most 256 levels are allowed.
/// @param name the file's name, for messages
/// @throws DataError with name, line and column
[[nodiscard]] Value parse(std::string_view text, std::string_view name = "json",
                          LoneSurrogates lone = LoneSurrogates::refuse);

/// Returns f(), which reads the parsed value of a file. Adds the file's name to the errors of Value, which does not
/// know it.
/// @throws DataError with the name; other exceptions of f unchanged
template <class Function>
decltype(auto) with_file_name(std::string const& name, Function&& f) {
  try {
    return f();
  } catch (DataError const& error) {
    if (!std::string_view(error.what()).starts_with("json: ")) throw;
    throw DataError(name + ": " + error.what());
  }
}

}}}  // namespace lockstep::json

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/json.ipp>
#endif
