// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/dropout_mask.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Dropout of a [rows, width] activation whose row r is slot r % length of sample r / length, for kernels that apply it
/// in passing. An inactive mask drops nothing and needs no positions.
template <class Space>
struct RowDropout {
  DropoutMask mask{};
  TensorView<Index const, 1, Space> positions{};  ///< [samples], each sample's place in the epoch: the random key
  Index length = 1;                               ///< rows per sample

  [[nodiscard]] std::uint64_t position(Index row) const noexcept requires(Space::host_accessible) {
    return static_cast<std::uint64_t>(positions.data[row / length]);
  }
  /// The number of a row's element within its sample.
  [[nodiscard]] std::uint64_t element(Index row, Index width, Index column) const noexcept {
    return static_cast<std::uint64_t>(row % length * width + column);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
