// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/core/philox.hpp>

namespace lockstep_test {

/// Makes a few mutations that find errors in parsers: changes bytes, sets extremes, truncates, duplicates and deletes.
inline std::string mutated(std::string input, lockstep::Philox const& random) {
  std::uint64_t draws = 0;
  auto const draw = [&](std::size_t below) { return below == 0 ? 0 : std::size_t{random(draws++)[0]} % below; };
  for (auto left = 1 + draw(4); left > 0 && !input.empty(); --left) {
    auto const at = draw(input.size()), length = std::min(1 + draw(8), input.size() - at);
    constexpr std::string_view extremes("\0\x01\x7f\x80\xff\xfe\"\\,:{}[]09-", 17);
    switch (draw(5)) {
      case 0:
        input[at] = static_cast<char>(draw(256));
        break;
      case 1:
        std::fill_n(input.begin() + static_cast<std::ptrdiff_t>(at), length, extremes[draw(extremes.size())]);
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.insert(at, input.substr(draw(input.size()), 1 + draw(64)));
        break;
      default:
        input.erase(at, length);
    }
  }
  return input;
}

}  // namespace lockstep_test
