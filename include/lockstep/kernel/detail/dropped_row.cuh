// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Dropout of one row for one thread: evaluates once what depends only on the row.
template <class T>
class DroppedRow {
 public:
  __device__ DroppedRow(RowDropout<CudaSpace> const& dropout, Index row, Index width) noexcept
      : drops_(dropout.mask.active()),
        element_(drops_ ? static_cast<Index>(dropout.element(row, width, 0)) : 0),
        scale_(drops_ ? static_cast<Accumulate<T>>(dropout.mask.scale()) : Accumulate<T>{1}),  // a division
        bits_(dropout.mask, drops_ ? static_cast<Index>(dropout.position(row)) : 0) {}

  /// Returns the factor of the element in this column. Call it for adjacent columns in order.
  [[nodiscard]] __device__ Accumulate<T> factor(Index column) noexcept {
    if (!drops_) return 1;
    return bits_.keeps(element_ + column) ? scale_ : Accumulate<T>{0};
  }

 private:
  bool drops_;
  Index element_;
  Accumulate<T> scale_;
  MaskBits bits_;
};

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
