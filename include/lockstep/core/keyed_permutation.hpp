// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
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
  static constexpr Index largest = Index{1} << 48;  ///< largest size

  /// @throws ConfigError unless 0 <= n <= 2^48
  KeyedPermutation(Index n, std::uint64_t key);

  /// Returns the number of elements.
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

  /// Replaces each position i by the element at position i; several times as fast as single calls.
  void replace(std::span<Index> positions) const noexcept;

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
  void draw(std::uint64_t key) noexcept;

  /// Replaces `lanes` positions at once. A walk is a long chain of multiplications; many chains hide each other's
  /// latency.
  [[gnu::always_inline]] inline void replace_lanes(Index* at) const noexcept;

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

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/keyed_permutation.ipp>
#endif
