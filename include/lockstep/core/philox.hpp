// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Philox4x32-10: random bits as a pure function of a 64-bit key and a 128-bit counter. Adjacent counters and keys
/// give unrelated blocks, so a counter can consist of epoch, position and element. There is no state, so results do not
/// depend on the caller or on the order of calls. Loops over counters vectorize.
/// @determinism bitwise, everywhere
/// @source Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011)
class Philox {
 public:
  using Counter = std::array<std::uint32_t, 4>;  ///< 128 bits of input
  using Block = std::array<std::uint32_t, 4>;    ///< 128 random bits

  /// Makes the generator of this key; different keys give independent numbers.
  constexpr explicit Philox(std::uint64_t key) noexcept : key_{low(key), high(key)} {}

  /// Returns 128 random bits.
  [[nodiscard, gnu::always_inline]] constexpr Block operator()(Counter counter) const noexcept {
    auto keys = key_;
    for (int i = 0; i < rounds; ++i) {
      round(keys, counter);
      advance(keys);
    }
    return counter;
  }

  /// Returns the block of the counter made from two numbers.
  [[nodiscard, gnu::always_inline]] constexpr Block operator()(std::uint64_t first,
                                                               std::uint64_t second = 0) const noexcept {
    return (*this)(Counter{low(first), high(first), low(second), high(second)});
  }

  /// Returns the blocks of several counters, each made from two numbers. Computes the key of each round once, which
  /// saves a GPU a sixth of the instructions.
  template <std::size_t count>
  [[nodiscard, gnu::always_inline]] constexpr std::array<Block, count> operator()(
      std::uint64_t first, std::array<std::uint64_t, count> const& seconds) const noexcept {
    std::array<Block, count> blocks{};
    for (std::size_t i = 0; i < count; ++i) blocks[i] = {low(first), high(first), low(seconds[i]), high(seconds[i])};
    auto keys = key_;
    for (int i = 0; i < rounds; ++i) {
      for (auto& block : blocks) round(keys, block);
      advance(keys);
    }
    return blocks;
  }

 private:
  using Keys = std::array<std::uint32_t, 2>;
  static constexpr int rounds = 10;

  [[gnu::always_inline]] static constexpr void round(Keys const& keys, Block& x) noexcept {
    auto const p0 = product(0xD2511F53, x[0]), p2 = product(0xCD9E8D57, x[2]);
    x = {high(p2) ^ x[1] ^ keys[0], low(p2), high(p0) ^ x[3] ^ keys[1], low(p0)};
  }
  /// Makes the keys of the next round.
  [[gnu::always_inline]] static constexpr void advance(Keys& keys) noexcept {
    keys[0] += 0x9E3779B9;  // the golden ratio
    keys[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  [[nodiscard, gnu::always_inline]] static constexpr std::uint64_t product(std::uint32_t a, std::uint32_t b) noexcept {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {  // nvcc multiplies two numbers of 64 bits, and adds zeros to the high words
      std::uint64_t y;
      asm("mul.wide.u32 %0, %1, %2;" : "=l"(y) : "r"(a), "r"(b));
      return y;
    }
#endif
    return std::uint64_t{a} * b;
  }
  [[nodiscard]] static constexpr std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
  [[nodiscard]] static constexpr std::uint32_t high(std::uint64_t x) noexcept { return low(x >> 32); }

  Keys key_;
};

/// Converts 32 random bits to one of the 2^24 multiples of 2^-24 in [0, 1), exactly.
[[nodiscard]] constexpr float uniform(std::uint32_t bits) noexcept { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Returns the uniform number of a counter.
[[nodiscard]] constexpr float uniform(Philox const& random, std::uint64_t counter) noexcept {
  return uniform(random(counter)[0]);
}

/// Returns two independent standard normal numbers by Box and Muller:
/// r cos(t), r sin(t) with r = sqrt(-2 ln u), t = 2 pi v. The largest possible is sqrt(64 ln 2) = 6.66.
/// @determinism bitwise for one mathematics library on one processor type; rounded to float almost everywhere
[[nodiscard]] inline std::array<double, 2> normal_pair(std::uint32_t first, std::uint32_t second) noexcept {
  double const u = (static_cast<double>(first) + 1.0) * 0x1p-32;  // in (0, 1]: its logarithm is finite
  double const angle = static_cast<double>(second) * (0x1p-31 * 3.14159265358979323846);
  double const radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Returns the standard normal number of a counter.
[[nodiscard]] inline double normal(Philox const& random, std::uint64_t counter) noexcept {
  auto const block = random(counter);
  return normal_pair(block[0], block[1])[0];
}

}}  // namespace lockstep
