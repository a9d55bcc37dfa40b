// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {
namespace detail {

/// Returns whether a decimal number that std::from_chars reports as out of range is too small, not too large.
[[nodiscard]] bool is_tiny(std::string_view number) noexcept;

/// Parses a decimal number whose nearest Value follows from one exact division or product. Returns its end, or null for
/// any other text. A significand below 2^53 and a power of ten up to 10^22 are exact in double (Clinger 1990), so their
/// quotient is rounded once. Rounding it again to float is exact unless it is half-way between two floats.
template <class Value>
requires(sizeof(Value) <= sizeof(double)) char const* parse_short(char const* at, char const* end,
                                                                  Value& out) noexcept {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  bool const negative = at != end && *at == '-';
  if (negative) ++at;
  std::uint64_t significand = 0;
  auto const digits = [&] {
    auto const* const first = at;
    for (; at != end && *at >= '0' && *at <= '9'; ++at)
      significand = 10 * significand + static_cast<std::uint64_t>(*at - '0');
    return static_cast<int>(at - first);
  };
  auto const* const first = at;
  int const whole = digits();
  int fraction = 0;
  if (at != end && *at == '.') {
    ++at;
    fraction = digits();
  }
  if (whole + fraction == 0 || at - first > 19 || significand >> 53 != 0) return nullptr;  // 19 digits fit the integer
  int power = -fraction;
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    bool const below = at != end && *at == '-';
    if (at != end && (*at == '-' || *at == '+')) ++at;
    int exponent = 0, count = 0;
    for (; at != end && *at >= '0' && *at <= '9' && count < 4; ++at, ++count) exponent = 10 * exponent + (*at - '0');
    if (count == 0 || count == 4) return nullptr;
    power += below ? -exponent : exponent;
  }
  if (power < -22 || power > 22) return nullptr;
  auto value = static_cast<double>(significand);
  value = power < 0 ? value / powers[-power] : value * powers[power];
  if constexpr (sizeof(Value) < sizeof(double)) {
    constexpr std::uint64_t rest = (std::uint64_t{1} << 29) - 1, half_way = std::uint64_t{1} << 28;
    if ((std::bit_cast<std::uint64_t>(value) & rest) == half_way) return nullptr;
  }
  out = static_cast<Value>(negative ? -value : value);
  return at;
}

}  // namespace detail

/// Parses decimal numbers like std::from_chars, except that a number that is too small for Value is 0. Faster than
/// std::from_chars for numbers of up to 15 digits with a small exponent; bit-identical for all.
template <class Value>
std::from_chars_result parse_real(char const* begin, char const* end, Value& out) noexcept {
  if constexpr (sizeof(Value) <= sizeof(double))
    if (auto const* const at = detail::parse_short(begin, end, out)) return {at, std::errc{}};
  auto result = std::from_chars(begin, end, out);
  if (result.ec == std::errc::result_out_of_range &&
      detail::is_tiny({begin, static_cast<std::size_t>(result.ptr - begin)})) {
    out = *begin == '-' ? -Value{0} : Value{0};
    result.ec = {};
  }
  return result;
}

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/parse_real.ipp>
#endif
