// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/variables.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_COLD_INLINE std::uint64_t parse_variable(char const* variable, std::string_view text, std::uint64_t least,
                                                  std::uint64_t most, char const* remedy) {
  std::uint64_t value = 0;
  bool good = !text.empty();
  for (char const c : text) {
    auto const digit = static_cast<std::uint64_t>(c - '0');
    good = good && digit < 10 && value <= (UINT64_MAX - digit) / 10;
    value = value * 10 + digit;
  }
  bool const visible = !text.empty() && text.find_first_of(" \t\r\n") == std::string_view::npos;
  std::string const quote = visible ? "" : "'";
  if (!good || value < least || value > most)
    throw ConfigError("launch: " + std::string(variable) + "=" + quote + std::string(text) + quote +
                      " is not a number from " + std::to_string(least) + " to " + std::to_string(most) + remedy);
  return value;
}

LOCKSTEP_COLD_INLINE std::string describe_variable(Lookup variable, char const* name) {
  auto const* const text = variable(name);
  return text ? std::string(name) + "=" + text : std::string(name) + " is not set";
}

}}}  // namespace lockstep::launch::detail
