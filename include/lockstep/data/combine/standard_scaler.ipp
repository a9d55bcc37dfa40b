// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <system_error>

#include <lockstep/core/shortest.hpp>
#include <lockstep/data/combine/standard_scaler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE std::string text_of(std::span<ChannelScale const> scales) {
  std::string text;
  for (auto const& [mean, deviation] : scales) text += shortest(mean) + ' ' + shortest(deviation) + '\n';
  return text;
}

LOCKSTEP_COLD_INLINE void read_scales(std::string_view text, std::span<ChannelScale> scales) {
  auto const* at = text.data();
  auto const* const end = at + text.size();
  std::size_t numbers = 0;
  bool valid = true;
  while (true) {
    at = std::find_if(at, end, [](char c) { return c != ' ' && c != '\n'; });
    if (at == end || !valid) break;
    double number = 0;
    auto const result = std::from_chars(at, end, number);
    bool const is_mean = numbers % 2 == 0;
    valid = result.ec == std::errc() && std::isfinite(number) && (is_mean || number > 0);
    if (numbers < 2 * scales.size()) (is_mean ? scales[numbers / 2].mean : scales[numbers / 2].deviation) = number;
    ++numbers;
    at = result.ptr;
  }
  if (!valid || numbers != 2 * scales.size())
    throw DataError("StandardScaler: the text has " + std::to_string(numbers) + (valid ? "" : " or more") + " numbers" +
                    (valid ? "" : ", one of which is no mean or deviation") + "; these members need " +
                    std::to_string(2 * scales.size()) +
                    ", a mean and a positive deviation for each channel; pass what to_text returned");
}

}}}  // namespace lockstep::data::detail
