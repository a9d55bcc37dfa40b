// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Mask of one application of dropout: a pure function of the key, the sample's position in the epoch and the element's
/// number within the sample. Stores nothing: forward and backward evaluate the same function. The rank, the row in the
/// batch and padding have no influence.
/// Element e takes 16 bits: half-word e % 8 (low half first) of the block Philox(key)(position, e / 8).
struct DropoutMask {
  static constexpr std::uint32_t steps = 65536;  ///< of the probability: it is rounded to a multiple of 2^-16

  std::uint64_t key = 0;                ///< key of this application
  std::uint32_t dropped = 0;            ///< an element whose 16 bits are below this is dropped
  std::uint64_t const* step = nullptr;  ///< if not null, the key is mix(*step, key): see StepKey

  /// Returns the mask that drops elements with this probability, rounded to a multiple of 1 / `steps`.
  /// @throws ConfigError unless 0 <= probability < 1
  [[nodiscard]] static DropoutMask of(std::uint64_t key, double probability) {
    expect<ConfigError>(probability >= 0 && probability < 1, [&] {
      return "dropout: probability " + shortest(probability) + "; it must be in [0, 1); 0 turns it off";
    });
    auto const rounded = static_cast<std::uint32_t>(std::lround(probability * steps));
    return {key, std::min(rounded, steps - 1)};
  }

  /// Returns false if the mask keeps all elements.
  [[nodiscard]] constexpr bool active() const noexcept { return dropped > 0; }
  /// Returns the factor of kept elements: 1 / (1 - p) for the rounded probability, so the expectation is exact.
  [[nodiscard]] constexpr double scale() const noexcept { return double{steps} / (steps - dropped); }
  /// Returns the same mask with the final key. Call it where `step` can be read.
  [[nodiscard]] constexpr DropoutMask resolved() const noexcept {
    return {step ? mix(*step, key) : key, dropped, nullptr};
  }
  /// Evaluates one element, for tests and devices.
  [[nodiscard]] constexpr bool keeps(std::uint64_t position, std::uint64_t element) const noexcept {
    return keeps(Philox(resolved().key)(position, element / 8), static_cast<unsigned>(element % 8));
  }
  /// Evaluates an element by its index among the 8 of its block. Selects the word without an index: an index would move
  /// the block from a device's registers into memory. Compares in a word's upper half: half of the elements need no
  /// shift.
  [[nodiscard]] constexpr bool keeps(Philox::Block const& block, unsigned index) const noexcept {
    auto word = block[0];
    word = index / 2 == 1 ? block[1] : word;
    word = index / 2 == 2 ? block[2] : word;
    word = index / 2 == 3 ? block[3] : word;
    return (index % 2 != 0 ? word : word << 16) >= dropped << 16;
  }
};

}}}  // namespace lockstep::kernel
