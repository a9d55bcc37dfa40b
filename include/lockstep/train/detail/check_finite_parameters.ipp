// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/detail/check_finite_parameters.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::optional<std::size_t> first_not_finite(std::span<float const> numbers) noexcept {
  auto at = with_best_instructions([first = numbers.data(), size = numbers.size()] {
    constexpr std::size_t block = 1024;  // a fixed length, so that the loop is vectorized
    constexpr std::int32_t magnitude = 0x7fffffff, largest = 0x7f7fffff;
    std::size_t begin = 0;
    for (; begin + block <= size; begin += block) {
      std::int32_t bad = 0;
      for (std::size_t i = begin; i < begin + block; ++i)
        bad |= (std::bit_cast<std::int32_t>(first[i]) & magnitude) > largest ? 1 : 0;
      if (bad != 0) break;
    }
    return begin;  // all before it are finite
  });
  for (; at < numbers.size(); ++at)
    if (!std::isfinite(numbers[at])) return at;
  return std::nullopt;
}

LOCKSTEP_COLD_INLINE std::string describe_not_finite(nn::ParameterLayout const& layout, std::span<float const> values,
                                                     std::span<float const> buffers) {
  auto const describe = [](char const* kind, auto const& entries, std::span<float const> all, bool infinite_too) {
    for (auto const& entry : entries) {
      auto const mine = all.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size));
      for (auto found = first_not_finite(mine); found;) {
        if (infinite_too || std::isnan(mine[*found]))
          return "the " + std::string(kind) + " \"" + entry.name + "\" is " +
                 (std::isnan(mine[*found]) ? "nan"
                  : mine[*found] > 0       ? "inf"
                                           : "-inf") +
                 " (element " + std::to_string(*found) + " of " + std::to_string(entry.size) + ")";
        auto const next = first_not_finite(mine.subspan(*found + 1));
        found = next ? std::optional(*found + 1 + *next) : std::nullopt;
      }
    }
    return std::string();
  };
  if (first_not_finite(values))
    if (auto found = describe("parameter", layout.entries(), values, true); !found.empty()) return found;
  return buffers.empty() || !first_not_finite(buffers) ? "" : describe("buffer", layout.buffers(), buffers, false);
}

LOCKSTEP_INLINE bool has_nan(std::span<float const> numbers) noexcept {
  return first_not_finite(numbers) &&
         std::any_of(numbers.begin(), numbers.end(), [](float x) { return std::isnan(x); });
}

LOCKSTEP_INLINE void check_finite_parameters(nn::ParameterLayout const& layout, std::span<float const> values,
                                             std::span<float const> buffers, std::string const& what,
                                             char const* remedy) {
  if (auto const found = describe_not_finite(layout, values, buffers); !found.empty())
    throw Error(what + found + remedy);
}

}}}  // namespace lockstep::train::detail
