// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Whether each number of type Narrow is a number of the wider type Wide: float16 and bfloat16 in float and double,
/// integers in wider ones, without a sign only from types without one.
template <class Narrow, class Wide>
concept Widens = (std::floating_point<Wide> && (std::same_as<Narrow, float16> || std::same_as<Narrow, bfloat16>)) ||
                 (std::integral<Wide> && std::integral<Narrow> && sizeof(Narrow) < sizeof(Wide) &&
                  (std::unsigned_integral<Narrow> || std::signed_integral<Wide>));

/// Converts numbers to a wider type, without loss. `from` may be unaligned; it has the bytes of one Narrow for each
/// number of `out` and may be the last bytes of `out`.
template <class Narrow, class Wide>
requires Widens<Narrow, Wide>
void widen(std::span<std::byte const> from, std::span<Wide> out) noexcept {
  std::array<Narrow, 256> block;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t begin = 0; begin < out.size(); begin += block.size()) {
    auto const count = std::min(block.size(), out.size() - begin);
    std::memcpy(static_cast<void*>(block.data()), from.data() + begin * sizeof(Narrow), count * sizeof(Narrow));
    std::copy_n(block.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}}  // namespace lockstep
