// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace lockstep_test {

/// Returns number i of those that belong to the seed: 2 u - 1 for the first word's uniform number u of Philox's block
/// (0, i), exact in float. It is optimized in each build, because many tests spend most of their time on such numbers.
[[nodiscard]] double number(std::uint64_t seed, std::int64_t i) noexcept;

}  // namespace lockstep_test
