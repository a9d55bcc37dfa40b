// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Returns bit j for each element of `count` adjacent ones, from `element` on, that the mask keeps.
template <int count>
[[nodiscard]] __device__ unsigned kept_bits(DropoutMask const& mask, std::uint64_t position, std::uint64_t element) {
  unsigned kept = 0;
  if (count >= 4 && element % count == 0) {  // one block of random bits has all of them
    auto words = Philox(mask.key)(position, element / 8);
    if (element % 8 != 0) {
      words[0] = words[2];
      words[1] = words[3];
    }
    for (int j = 0; j < count; ++j)
      kept |= unsigned{(words[static_cast<std::size_t>(j / 2)] >> (16 * (j % 2)) & 0xffff) >= mask.dropped} << j;
  } else {
    MaskBits bits(mask, static_cast<Index>(position));
    for (int j = 0; j < count; ++j) kept |= unsigned{bits.keeps(static_cast<Index>(element) + j)} << j;
  }
  return kept;
}

/// Dropout of one row for one thread: evaluates once what depends only on the row.
template <class Scalar>
class DroppedRow {
 public:
  __device__ DroppedRow(RowDropout<CudaSpace> const& dropout, Index row, Index width) noexcept
      : drops_(dropout.mask.active()),
        element_(drops_ ? static_cast<Index>(dropout.element(row, width, 0)) : 0),
        scale_(drops_ ? static_cast<Accumulate<Scalar>>(dropout.mask.scale()) : Accumulate<Scalar>{1}),  // a division
        bits_(dropout.mask, drops_ ? static_cast<Index>(dropout.position(row)) : 0) {}

  /// Whether elements are dropped at all.
  [[nodiscard]] __device__ bool drops() const noexcept { return drops_; }
  /// Returns the factor of a kept element.
  [[nodiscard]] __device__ Accumulate<Scalar> scale() const noexcept { return scale_; }
  /// Returns bit j for each of `count` adjacent elements, from this column on, that are kept.
  template <int count>
  [[nodiscard]] __device__ unsigned kept(Index column) const noexcept {
    return kept_bits<count>(bits_.mask(), bits_.position(), static_cast<std::uint64_t>(element_ + column));
  }

  /// Returns the factor of the element in this column. Call it for adjacent columns in order.
  [[nodiscard]] __device__ Accumulate<Scalar> factor(Index column) noexcept {
    if (!drops_) return 1;
    return bits_.keeps(element_ + column) ? scale_ : Accumulate<Scalar>{0};
  }

 private:
  bool drops_;
  Index element_;
  Accumulate<Scalar> scale_;
  MaskBits bits_;
};

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
