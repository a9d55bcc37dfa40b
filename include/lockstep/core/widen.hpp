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

/// Converts 16-bit numbers, float16 or bfloat16, to wider ones, without loss. `from` may be unaligned; it has two bytes
/// for each number of `out` and may be the last bytes of `out`.
template <class Half, std::floating_point Wide>
requires(std::same_as<Half, float16> || std::same_as<Half, bfloat16>) void widen(std::span<std::byte const> from,
                                                                                 std::span<Wide> out) noexcept {
  std::array<Half, 256> block;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t begin = 0; begin < out.size(); begin += block.size()) {
    auto const count = std::min(block.size(), out.size() - begin);
    std::memcpy(static_cast<void*>(block.data()), from.data() + begin * sizeof(Half), count * sizeof(Half));
    std::copy_n(block.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}}  // namespace lockstep
