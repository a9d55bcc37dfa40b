// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Dropout of a [slots, width] activation, for kernels that fuse it. An inactive mask drops nothing and needs no
/// layout.
template <class Space>
struct RowDropout {
  DropoutMask mask{};              ///< inactive by default
  SequenceLayout<Space> layout{};  ///< of the slots; has the positions that key the mask

  /// Returns the random key of a slot's sample.
  [[nodiscard]] constexpr std::uint64_t position(Index slot) const noexcept {
    return static_cast<std::uint64_t>(layout.positions.data[layout.row_of(slot)]);
  }
  /// Returns the number of a slot's element within its sample.
  [[nodiscard]] constexpr std::uint64_t element(Index slot, Index width, Index column) const noexcept {
    return static_cast<std::uint64_t>((slot - layout.start(layout.row_of(slot))) * width + column);
  }
};

}}}  // namespace lockstep::kernel
