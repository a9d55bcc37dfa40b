// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Dropout of one row for one thread: evaluates once what depends only on the row.
template <class Scalar>
class DroppedRow {
 public:
  /// @param mask  the mask with its final key: `dropout.mask.resolved()`
  /// @param scale  factor of a kept element: a division in double, which the host does once
  __device__ DroppedRow(RowDropout<CudaSpace> const& dropout, DropoutMask const& mask, Accumulate<Scalar> scale,
                        Index row, Index width) noexcept
      : mask_(mask), scale_(scale) {
    if (!mask.active()) return;
    auto const sample = dropout.layout.row_of(row);
    position_ = static_cast<std::uint64_t>(dropout.layout.positions.data[sample]);
    element_ = static_cast<std::uint64_t>((row - dropout.layout.start(sample)) * width);
  }

  /// Multiplies `count` adjacent elements, from this column on, by their factors.
  template <std::size_t count>
  __device__ void apply(Index column, Accumulate<Scalar> (&x)[count]) const noexcept {
    if (!mask_.active()) return;
    auto const element = element_ + static_cast<std::uint64_t>(column);
    if (count >= 4 && element % count == 0) {  // one block of random bits has all of them
      auto block = Philox(mask_.key)(position_, element / 8);
      if (element % 8 != 0) {
        block[0] = block[2];
        block[1] = block[3];
      }
      multiply(x, [&](int j) { return mask_.keeps(block, static_cast<unsigned>(j)); });
    } else {
      MaskBits bits(mask_, static_cast<Index>(position_));
      multiply(x, [&](int j) { return bits.keeps(static_cast<Index>(element) + j); });
    }
  }

 private:
  template <std::size_t count, class Keeps>
  __device__ void multiply(Accumulate<Scalar> (&x)[count], Keeps const& keeps) const noexcept {
    for (int j = 0; j < static_cast<int>(count); ++j)
      x[j] = rounded_product(x[j], keeps(j) ? scale_ : Accumulate<Scalar>{0});
  }

  DropoutMask mask_;
  Accumulate<Scalar> scale_;
  std::uint64_t position_ = 0, element_ = 0;
};

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
