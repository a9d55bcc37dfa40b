// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/philox_bits.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>
#include <lockstep/core/philox.hpp>

using namespace lockstep;

TEST_CASE("every instruction set gives Philox's half-words, across the 32-bit limits of the counter") {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
  for (auto set : {InstructionSet::avx2, InstructionSet::avx512})
    if (best_instruction_set() >= set) sets.push_back(set);
  for (auto set : sets) {
    CAPTURE(to_string(set));
    for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xfffffffc}, ~std::uint64_t{0} - 6}) {
      for (std::uint64_t position : {std::uint64_t{0}, std::uint64_t{123}, std::uint64_t{0x8000000700000003}}) {
        std::uint64_t const key = 0x9876543210fedcba ^ position;
        for (Index blocks : {0, 1, 2, 3, 7, 8, 9, 31, 32}) {
          std::vector<std::uint16_t> bits(static_cast<std::size_t>((blocks + 7) / 8 * 64));
          kernel::detail::philox_bits(set, key, position, first, blocks, bits.data());
          Index wrong = 0;
          for (Index b = 0; b < blocks; ++b) {
            auto const words = Philox(key)(position, first + static_cast<std::uint64_t>(b));
            for (Index half = 0; half < 8; ++half)
              wrong += bits[static_cast<std::size_t>(8 * b + half)] !=
                       static_cast<std::uint16_t>(words[static_cast<std::size_t>(half / 2)] >> (16 * (half % 2)));
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}
