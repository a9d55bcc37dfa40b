// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// The dropout of one row, as a thread sees it: what depends on the row alone is found once.
template <class T>
class DroppedRow {
 public:
  __device__ DroppedRow(RowDropout<CudaSpace> const& dropout, Index row, Index width) noexcept
      : mask_(dropout.mask.resolved()),
        drops_(mask_.active()),
        position_(drops_ ? dropout.position(row) : 0),
        element_(drops_ ? dropout.element(row, width, 0) : 0) {}

  /// What the element of this column is multiplied by.
  [[nodiscard]] __device__ Accumulate<T> factor(Index column) const noexcept {
    if (!drops_) return 1;
    bool const keeps = mask_.keeps(position_, element_ + static_cast<std::uint64_t>(column));
    return keeps ? static_cast<Accumulate<T>>(mask_.scale()) : Accumulate<T>{0};
  }

 private:
  DropoutMask mask_;
  bool drops_;
  std::uint64_t position_, element_;
};

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
