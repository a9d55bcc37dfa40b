// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/keyed_permutation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE KeyedPermutation::KeyedPermutation(Index n, std::uint64_t key) : n_(static_cast<std::uint64_t>(n)) {
  expect<ConfigError>(n >= 0 && n <= largest, [&] {
    return "KeyedPermutation: " + std::to_string(n) + " elements; 0 to 2^48 can be shuffled";
  });
  if (n_ <= few) {
    draw(key);
    return;
  }
  columns_ = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  rows_ = static_cast<std::uint32_t>((n_ + columns_ - 1) / columns_);
  for (std::size_t round = 0; round < rounds; ++round) {
    auto const words = mix(key, round);
    round_[round] = {static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(words >> 32) | 1};
  }
}

[[gnu::always_inline]] inline void KeyedPermutation::replace_lanes(Index* at) const noexcept {
  // 32-bit words and signed conversions: each line is one instruction on all lanes.
  std::uint32_t row[lanes], column[lanes];
  std::uint32_t const rows = rows_, columns = columns_;
  auto const row_scale = scale_of(rows), column_scale = scale_of(columns);
  auto const per_column = 1 / static_cast<double>(columns);
  for (std::size_t j = 0; j < lanes; ++j) {
    // Nearest whole quotient: adding 2^52 moves it into the last bits of the double. A position written into the bits
    // of 2^52 is converted in the same way. The quotient is exact unless it is near a half, where both adjacent
    // integers are correct.
    auto const position = std::bit_cast<double>(static_cast<std::uint64_t>(at[j]) | bits_of_2_52) - 0x1p52;
    row[j] = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(position * per_column + 0x1p52));
    column[j] = static_cast<std::uint32_t>(at[j]) - row[j] * columns;
  }
  for (std::size_t j = 0; j < lanes; ++j) {  // a rounded-up quotient leaves a negative column
    auto const below = column[j] >> 31;
    row[j] -= below;
    column[j] += columns & (0u - below);
  }
  for (std::size_t k = 0; k < rounds; k += 2) {
    auto const first = round_[k], second = round_[k + 1];
    for (std::size_t j = 0; j < lanes; ++j) row[j] = forth(row[j], scaled(column[j], first, row_scale), rows);
    for (std::size_t j = 0; j < lanes; ++j) column[j] = forth(column[j], scaled(row[j], second, column_scale), columns);
  }
  std::uint64_t beyond = 0;
  for (std::size_t j = 0; j < lanes; ++j) {
    auto const cell = std::uint64_t{row[j]} * columns + column[j];
    beyond |= n_ - 1 - cell;
    at[j] = static_cast<Index>(cell);
  }
  if (beyond >> 63 != 0) walk_on(at);
}

LOCKSTEP_INLINE void KeyedPermutation::replace(std::span<Index> positions) const noexcept {
  auto* const all = positions.data();
  auto const count = positions.size();
  auto const groups = n_ <= few ? 0 : (count + lanes - worth_lanes) / lanes;  // the last group may be partly filled
  std::array<Index, lanes> last{};
  auto const left = groups * lanes > count ? count % lanes : 0;
  std::copy_n(all + (count - left), left, last.begin());
  with_best_instructions([self = *this, all, groups, whole = (count - left) / lanes, end = last.data()] {
    for (std::size_t i = 0; i < groups; ++i) self.replace_lanes(i < whole ? all + i * lanes : end);
  });
  std::copy_n(last.begin(), left, all + (count - left));
  for (auto i = std::min(groups * lanes, count); i < count; ++i) all[i] = (*this)(all[i]);
}

LOCKSTEP_INLINE void KeyedPermutation::draw(std::uint64_t key) noexcept {
  std::array<std::uint8_t, few> order{};
  for (std::uint64_t i = 0; i < n_; ++i) {
    auto const other = (mix(key, i) >> 32) * (i + 1) >> 32;
    order[i] = order[other];
    order[other] = static_cast<std::uint8_t>(i);
  }
  for (std::uint64_t i = 0; i < n_; ++i) drawn_ |= std::uint64_t{order[i]} << 4 * i;
}

}}  // namespace lockstep
