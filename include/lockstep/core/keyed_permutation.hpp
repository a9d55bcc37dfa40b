// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// A shuffle of [0, n) without a table: p(i) is the element at position i, in constant time and memory, for any n up to
/// 2^48. Another key gives another order. Not for secrets.
///
/// A Feistel network over a grid of a rows and b = ceil(sqrt(n)) columns with a b >= n: each round adds to one
/// coordinate a keyed hash of the other one. The few cells beyond n (fewer than b of them) walk on until they land
/// inside. Eight rounds pass the statistics that four fail. Whole orders of fewer than ten elements are not equally
/// likely (they have more keys than orders, but not evenly): positions and pairs are.
/// @determinism bitwise, everywhere
class KeyedPermutation {
 public:
  static constexpr Index largest = Index{1} << 48;

  /// @throws ConfigError unless 0 <= n <= 2^48
  KeyedPermutation(Index n, std::uint64_t key) : n_(static_cast<std::uint64_t>(n)) {
    expect<ConfigError>(n >= 0 && n <= largest, [&] {
      return "KeyedPermutation: " + std::to_string(n) + " elements; 0 to 2^48 can be shuffled";
    });
    columns_ = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    if (columns_ == 0) columns_ = 1;
    rows_ = static_cast<std::uint32_t>((n_ + columns_ - 1) / columns_);
    for (std::size_t round = 0; round < rounds; ++round) key_[round] = mix(key, round);
  }

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(n_); }

  /// The element at position i, which must lie in [0, n); not checked.
  [[nodiscard]] Index operator()(Index i) const noexcept {
    auto at = static_cast<std::uint64_t>(i);
    do {
      auto row = static_cast<std::uint32_t>(at / columns_), column = static_cast<std::uint32_t>(at % columns_);
      for (std::size_t round = 0; round < rounds; round += 2) {
        row = shifted(row, hash(column, key_[round]), rows_);
        column = shifted(column, hash(row, key_[round + 1]), columns_);
      }
      at = std::uint64_t{row} * columns_ + column;
    } while (at >= n_);
    return static_cast<Index>(at);
  }

  /// Puts the element at position i in the place of each i in a span of Index, many at a time: several times as fast.
  /// A template, so that only who calls it compiles it.
  template <class Positions>
  void replace(Positions&& positions) const noexcept {
    auto* const all = positions.data();
    auto const count = static_cast<std::size_t>(positions.size()), whole = count / lanes * lanes;
    with_best_instructions([self = *this, all, whole] {
      for (std::size_t i = 0; i < whole; i += lanes) self.replace_lanes(all + i);
    });
    for (std::size_t i = 0; i < whole; ++i) {
      if (static_cast<std::uint64_t>(all[i]) >= n_) all[i] = (*this)(all[i]);  // walks on, from where it is
    }
    for (std::size_t i = whole; i < count; ++i) all[i] = (*this)(all[i]);
  }

  /// The position of an element: inverse(p(i)) == i.
  [[nodiscard]] Index inverse(Index element) const noexcept {
    auto at = static_cast<std::uint64_t>(element);
    do {
      auto row = static_cast<std::uint32_t>(at / columns_), column = static_cast<std::uint32_t>(at % columns_);
      for (std::size_t round = rounds; round > 0; round -= 2) {
        column = unshifted(column, hash(row, key_[round - 1]), columns_);
        row = unshifted(row, hash(column, key_[round - 2]), rows_);
      }
      at = std::uint64_t{row} * columns_ + column;
    } while (at >= n_);
    return static_cast<Index>(at);
  }

 private:
  static constexpr std::size_t rounds = 8, lanes = 64;

  /// One walk of `lanes` cells, which may end beyond n. A walk is a long chain of multiplications: the chains of so
  /// many cells hide behind one another.
  [[gnu::always_inline]] void replace_lanes(Index* at) const noexcept {
    // Whole words throughout, so that each line is one instruction on several lanes.
    std::uint64_t row[lanes], column[lanes];
    std::uint64_t const rows = rows_, columns = columns_;
    for (std::size_t j = 0; j < lanes; ++j) {
      // Exact: operands below 2^49, and a quotient below 2^25 misses the next whole number by at least 2^-25.
      row[j] =
          static_cast<std::uint64_t>(static_cast<Index>(static_cast<double>(at[j]) / static_cast<double>(columns)));
      column[j] = static_cast<std::uint64_t>(at[j]) - row[j] * columns;
    }
    for (std::size_t round = 0; round < rounds; round += 2) {
      for (std::size_t j = 0; j < lanes; ++j) {
        auto const by = wide_hash(column[j], key_[round]) * rows >> 32;
        auto const next = row[j] + by;
        row[j] = next >= rows ? next - rows : next;
      }
      for (std::size_t j = 0; j < lanes; ++j) {
        auto const by = wide_hash(row[j], key_[round + 1]) * columns >> 32;
        auto const next = column[j] + by;
        column[j] = next >= columns ? next - columns : next;
      }
    }
    for (std::size_t j = 0; j < lanes; ++j) at[j] = static_cast<Index>(row[j] * columns + column[j]);
  }

  [[nodiscard]] static std::uint64_t wide_hash(std::uint64_t x, std::uint64_t key) noexcept {
    auto z = (x ^ key) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93u;
    return z >> 32;
  }
  [[nodiscard]] static std::uint32_t hash(std::uint32_t x, std::uint64_t key) noexcept {
    return static_cast<std::uint32_t>(wide_hash(x, key));
  }
  /// A hash scaled into [0, size), without a division.
  [[nodiscard]] static std::uint32_t scaled(std::uint32_t hash, std::uint32_t size) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * size >> 32);
  }
  [[nodiscard]] static std::uint32_t shifted(std::uint32_t x, std::uint32_t hash, std::uint32_t size) noexcept {
    x += scaled(hash, size);  // below 2 size <= 2^25
    return x >= size ? x - size : x;
  }
  [[nodiscard]] static std::uint32_t unshifted(std::uint32_t x, std::uint32_t hash, std::uint32_t size) noexcept {
    auto const by = scaled(hash, size);
    return x >= by ? x - by : x + size - by;
  }

  std::uint64_t n_;
  std::uint32_t rows_ = 1, columns_ = 1;
  std::array<std::uint64_t, rounds> key_{};
};

}  // namespace lockstep::inline LOCKSTEP_ABI
