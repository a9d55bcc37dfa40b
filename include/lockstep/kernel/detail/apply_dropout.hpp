// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/masked.hpp>
#include <lockstep/kernel/detail/philox_bits.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

template <class Scalar>
[[nodiscard, gnu::always_inline]] inline Scalar kept_or_zero(Scalar x, bool kept) noexcept {
  return masked(x, kept ? ~BitsOf<Scalar>{0} : BitsOf<Scalar>{0});
}

/// Calls f(done, here, bits) for consecutive parts of `count` elements, from element `first` on of the sample at
/// `position`. Element done + i takes bits[i], for i < here. Call it inside with_best_instructions.
template <class Function>
[[gnu::always_inline]] inline void for_dropout_bits(DropoutMask mask, std::uint64_t position, std::uint64_t first,
                                                    Index count, Function const& f) noexcept {
  constexpr Index elements_per_block = 8, max_blocks = 32;
  auto const set = best_instruction_set();
  std::uint16_t bits[elements_per_block * max_blocks];
  for (Index done = 0; done < count;) {
    auto const element = first + static_cast<std::uint64_t>(done);
    auto const skip = static_cast<Index>(element % elements_per_block);
    Index const here = std::min(count - done, elements_per_block * max_blocks - skip);
    Index const blocks = (skip + here + elements_per_block - 1) / elements_per_block;
    philox_bits(set, mask.key, position, element / elements_per_block, blocks, bits);
    f(done, here, static_cast<std::uint16_t const*>(bits + skip));
    done += here;
  }
}

/// Computes y[i] = x[i] * scale if the mask keeps element first + i of the sample at `position`, else 0; or adds it to
/// y[i]. x and y may be equal. Call it inside with_best_instructions.
template <class Scalar>
[[gnu::always_inline]] inline void apply_dropout(DropoutMask mask, std::uint64_t position, std::uint64_t first,
                                                 Index count, Scalar const* x, Scalar* y,
                                                 Write write = Write::overwrite) noexcept {
  auto const scale = static_cast<Scalar>(mask.scale());
  auto const dropped = static_cast<std::uint16_t>(mask.dropped);
  for_dropout_bits(mask, position, first, count, [=](Index done, Index here, std::uint16_t const* bits) {
    maybe_in_place(x + done, y + done, [=](Scalar const* from, Scalar* to) {
      write_each(0, here, to, write, [=](Index i) { return kept_or_zero(from[i] * scale, bits[i] >= dropped); });
    });
  });
}

}}}  // namespace lockstep::kernel::detail
