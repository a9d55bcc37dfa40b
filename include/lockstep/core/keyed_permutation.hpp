// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// A shuffle of [0, n) without a table: p(i) is the element at position i, in constant time and memory, for any n up to
/// 2^48. Different keys give different orders. Not cryptographic.
///
/// A Feistel network over a grid of a rows and b = ceil(sqrt(n)) columns with a b >= n. Each round adds a keyed hash of
/// one coordinate to the other one. Cells beyond n (fewer than b) repeat the walk until they are inside. Eight rounds
/// pass the statistical tests that six fail. Up to 16 elements are drawn one by one instead: all their orders are
/// equally likely.
/// @determinism bitwise, everywhere
class KeyedPermutation {
 public:
  static constexpr Index largest = Index{1} << 48;

  /// @throws ConfigError unless 0 <= n <= 2^48
  KeyedPermutation(Index n, std::uint64_t key) : n_(static_cast<std::uint64_t>(n)) {
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

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(n_); }

  /// Returns the element at position i, which must be in [0, n); not checked.
  [[nodiscard]] Index operator()(Index i) const noexcept {
    auto at = static_cast<std::uint64_t>(i);
    if (n_ <= few) return static_cast<Index>(drawn_ >> 4 * at & 15);
    auto const row_scale = scale_of(rows_), column_scale = scale_of(columns_);
    do {
      auto row = static_cast<std::uint32_t>(at / columns_), column = static_cast<std::uint32_t>(at % columns_);
      for (std::size_t k = 0; k < rounds; k += 2) {
        row = forth(row, scaled(column, round_[k], row_scale), rows_);
        column = forth(column, scaled(row, round_[k + 1], column_scale), columns_);
      }
      at = std::uint64_t{row} * columns_ + column;
    } while (at >= n_);
    return static_cast<Index>(at);
  }

  /// Replaces each position i in a span of Index by the element at position i; several times as fast as single calls. A
  /// template, so that only callers compile it.
  template <class Positions>
  void replace(Positions&& positions) const noexcept {
    auto* const all = positions.data();
    auto const count = static_cast<std::size_t>(positions.size());
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

  /// Returns the position of an element: inverse(p(i)) == i.
  [[nodiscard]] Index inverse(Index element) const noexcept {
    auto at = static_cast<std::uint64_t>(element);
    if (n_ <= few) {
      Index i = 0;
      while ((*this)(i) != element) ++i;
      return i;
    }
    auto const row_scale = scale_of(rows_), column_scale = scale_of(columns_);
    do {
      auto row = static_cast<std::uint32_t>(at / columns_), column = static_cast<std::uint32_t>(at % columns_);
      for (std::size_t k = rounds; k > 0; k -= 2) {
        column = back(column, scaled(row, round_[k - 1], column_scale), columns_);
        row = back(row, scaled(column, round_[k - 2], row_scale), rows_);
      }
      at = std::uint64_t{row} * columns_ + column;
    } while (at >= n_);
    return static_cast<Index>(at);
  }

 private:
  struct Round {
    std::uint32_t mask = 0, factor = 1;
  };
  static constexpr std::size_t rounds = 8, lanes = 128;
  static constexpr std::size_t worth_lanes = 16;  // fewest positions for which a full group is faster
  static constexpr std::uint64_t few = 16;        // elements whose order fits into one word

  /// Draws a uniform permutation: swaps each element with a random one up to it.
  void draw(std::uint64_t key) noexcept {
    std::array<std::uint8_t, few> order{};
    for (std::uint64_t i = 0; i < n_; ++i) {
      auto const other = (mix(key, i) >> 32) * (i + 1) >> 32;
      order[i] = order[other];
      order[other] = static_cast<std::uint8_t>(i);
    }
    for (std::uint64_t i = 0; i < n_; ++i) drawn_ |= std::uint64_t{order[i]} << 4 * i;
  }

  /// Replaces `lanes` positions at once. A walk is a long chain of multiplications; many chains hide each other's
  /// latency.
  [[gnu::always_inline]] void replace_lanes(Index* at) const noexcept {
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
      for (std::size_t j = 0; j < lanes; ++j)
        column[j] = forth(column[j], scaled(row[j], second, column_scale), columns);
    }
    std::uint64_t beyond = 0;
    for (std::size_t j = 0; j < lanes; ++j) {
      auto const cell = std::uint64_t{row[j]} * columns + column[j];
      beyond |= n_ - 1 - cell;
      at[j] = static_cast<Index>(cell);
    }
    if (beyond >> 63 != 0) walk_on(at);
  }

  /// Continues the walk of cells beyond n. Not vectorized because it is rare.
  [[gnu::noinline]] void walk_on(Index* at) const noexcept {
    for (std::size_t j = 0; j < lanes; ++j) {
      if (static_cast<std::uint64_t>(at[j]) >= n_) at[j] = (*this)(at[j]);
    }
  }

  /// Returns a keyed hash of x, scaled into [0, size). The hash's first 24 bits fit a float exactly. The product stays
  /// below size even after rounding, because size has at most 24 bits.
  [[nodiscard]] static std::uint32_t scaled(std::uint32_t x, Round round, float scale) noexcept {
    auto hash = (x ^ round.mask) * 0x9E3779B1u;
    hash = (hash ^ hash >> 15) * round.factor;
    auto const first_bits = static_cast<float>(static_cast<std::int32_t>(hash >> 8));
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(first_bits * scale));
  }
  [[nodiscard]] static float scale_of(std::uint32_t size) noexcept {
    return static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f;
  }
  [[nodiscard]] static std::uint32_t forth(std::uint32_t x, std::uint32_t by, std::uint32_t size) noexcept {
    x += by;                       // below 2 size <= 2^25
    return std::min(x, x - size);  // wraps if x is below size
  }
  [[nodiscard]] static std::uint32_t back(std::uint32_t x, std::uint32_t by, std::uint32_t size) noexcept {
    x -= by;
    return std::min(x, x + size);
  }

  static constexpr std::uint64_t bits_of_2_52 = 0x4330000000000000u;

  std::uint64_t n_;
  std::uint64_t drawn_ = 0;  // four bits for each of up to `few` elements
  std::uint32_t rows_ = 1, columns_ = 1;
  std::array<Round, rounds> round_{};
};

}}  // namespace lockstep
